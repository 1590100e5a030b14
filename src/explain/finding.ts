/** What an explanation says: findings, each with its evidence and its cure, the most important one first. Pure. */
import type { CAUSES, Explanation, Finding } from "../contracts/http/explain-operations.ts";

export type { Explanation, Finding };
export type Cause = (typeof CAUSES)[number];

/** A time of the last day in which an API was slow or failed. */
export interface PastTrouble {
  kind: "failing" | "slow";
  /** It has lasted until now, as far as whole minutes tell. */
  isOpen: boolean;
  finding: Finding;
  /** What is said instead if newer requests show that it is over. */
  over: Finding;
}

/** What an explanation says of the requests of an API that are slow, or have failed for a while. */
export type Slowness = Pick<PastTrouble, "kind"> & Pick<Finding, "title">;

const RANK: Record<Finding["severity"], number> = { error: 0, warning: 1, info: 2 };
/** More would hide the important ones. */
const FINDINGS_MAX = 20;

/** `undefined` among the evidence is left out: the number is not known. */
export function found(
  cause: Cause,
  severity: Finding["severity"],
  title: string,
  more: { evidence?: readonly (string | undefined)[]; cure?: string; command?: string | undefined } = {},
): Finding {
  const evidence = (more.evidence ?? []).filter((line) => line !== undefined);
  return { cause, severity, title, evidence, cure: more.cure ?? "", command: more.command ?? null };
}

/** Errors first, then warnings; findings of the same severity stay in the order of the rules. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => RANK[a.severity] - RANK[b.severity]).slice(0, FINDINGS_MAX);
}

/** `well`: what to say if nothing is wrong. It is also said beside findings that need nobody. */
export function explanation(
  about: Pick<Explanation, "api_name" | "job_id">,
  findings: readonly Finding[],
  well: () => Finding | undefined,
): Explanation {
  const isWrong = findings.some(({ severity }) => severity !== "info");
  const calm = isWrong ? undefined : well();
  const all = inOrder(calm === undefined ? findings : [...findings, calm]);
  const others = all.filter(({ severity }) => severity !== "info").length - 1;
  const more = others > 0 ? `; ${others} more ${others === 1 ? "finding" : "findings"}` : "";
  return { ...about, summary: `${all[0]?.title ?? "nothing is known"}${more}`, findings: all };
}
