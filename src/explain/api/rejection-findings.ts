/** Which requests the gateway refuses, why, and what their callers or the operator can do. Pure. */
import { ERRORS, type ErrorCode } from "../../contracts/errors.ts";
import { type Cause, type Finding, found } from "../finding.ts";
import { count, duration } from "../words.ts";
import type { ApiFacts } from "./api-facts.ts";

interface Refusal {
  cause: Cause;
  codes: readonly ErrorCode[];
  what: string;
  cure: string;
  command?: (name: string) => string;
}

const REFUSALS: readonly Refusal[] = [
  {
    cause: "rejected_queue_full",
    codes: ["queue_full"],
    what: "because too many waited or ran already",
    cure: "raise autoscaling.max_replicas or min_replicas, or max_replica_concurrency if a longer queue helps; callers should retry after Retry-After",
    command: () => "quern patch quern.yaml",
  },
  {
    cause: "rejected_queue_timeout",
    codes: ["queue_timeout"],
    what: "because no replica was free before predictor.timeout",
    cure: "raise min_replicas or max_replicas, or make predict() faster",
    command: () => "quern patch quern.yaml",
  },
  {
    cause: "rejected_timeout",
    codes: ["prediction_timeout"],
    what: "because predict() took longer than predictor.timeout",
    cure: "make predict() faster, or raise predictor.timeout; a replica whose predict() hangs is replaced",
    command: (name) => `quern logs ${name}`,
  },
  {
    cause: "rejected_rate_limited",
    codes: ["rate_limited"],
    what: "because a key was used more often than its rate permits",
    cure: "create a key with a higher --rate, or let the caller wait for Retry-After",
    command: () => "quern keys list",
  },
  {
    cause: "rejected_body_too_large",
    codes: ["body_too_large"],
    what: "because their body was too large",
    cure: "send smaller payloads, such as a link to a file in a store, or use a batch API",
  },
  {
    cause: "rejected_key",
    codes: ["unauthorized", "forbidden"],
    what: "because they had no key that permits them",
    cure: "give the caller a key with the scope predict; an expired or revoked key must be replaced",
    command: (name) => `quern keys create --scope predict --api ${name}`,
  },
  {
    cause: "rejected_not_ready",
    codes: ["api_not_ready"],
    what: "because no replica was ready",
    cure: "the other findings say why none is; callers should retry",
    command: (name) => `quern get ${name}`,
  },
];

/** Caused by the client alone: it left, or it sent nonsense. */
const KNOWN = new Set<string>(REFUSALS.flatMap(({ codes }) => codes));

export function rejectionFindings({ name, traffic }: ApiFacts): Finding[] {
  if (traffic === undefined) return [];
  const { rejected } = traffic.tally;
  const last = `in the last ${duration(traffic.seconds)}`;
  const findings = REFUSALS.flatMap(({ cause, codes, what, cure, command }) => {
    const number = codes.reduce((sum, code) => sum + (rejected[code] ?? 0), 0);
    if (number === 0) return [];
    const evidence = codes
      .filter((code) => rejected[code] !== undefined)
      .map((code) => `${rejected[code]} times ${code} (${ERRORS[code][0]}) ${last}`);
    const title = `${count(number, "request")} refused ${what}`;
    return [found(cause, "warning", title, { evidence, cure, command: command?.(name) })];
  });
  const others = Object.entries(rejected).filter(([code, number]) => !KNOWN.has(code) && number > 0);
  if (others.length === 0) return findings;
  const number = others.reduce((sum, [, each]) => sum + each, 0);
  const evidence = others.map(([code, each]) => `${each} times ${code} ${last}`);
  const cure = "the code of each error says what the caller has to change";
  return [
    ...findings,
    found("rejected_other", "info", `${count(number, "request")} refused for other reasons`, {
      evidence,
      cure,
    }),
  ];
}
