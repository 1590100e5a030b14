/** The page that shows what a command would print. Findings name commands; in the pages a link is shorter. Pure. */
export interface Place {
  text: string;
  segments: readonly string[];
  query?: Record<string, string>;
}

const LOGS = { tab: "logs" };
const VERSIONS = { tab: "versions" };
const PLACES: readonly (readonly [RegExp, (api: string, second: string) => Place])[] = [
  [
    /^quern explain (\S+) --at (\S+)$/,
    (api, at) => ({ text: "Look at that time", segments: ["apis", api], query: { at } }),
  ],
  [
    /^quern (?:explain|job get) (\S+) (\S+)$/,
    (api, job) => ({ text: "Open the job", segments: ["jobs", api, job] }),
  ],
  [
    /^quern job logs (\S+) (\S+)$/,
    (api, job) => ({ text: "Open the logs", segments: ["jobs", api, job], query: LOGS }),
  ],
  [
    /^quern job (?:failures|redrive) (\S+) (\S+)/,
    (api, job) => ({ text: "Open the failures", segments: ["jobs", api, job], query: { tab: "failures" } }),
  ],
  [/^quern logs (\S+)$/, (api) => ({ text: "Open the logs", segments: ["apis", api], query: LOGS })],
  [
    /^quern rollback (\S+)/,
    (api) => ({ text: "Compare the versions", segments: ["apis", api], query: VERSIONS }),
  ],
];

/** Undefined if no page shows it. `evidence`: of the same finding. */
export function placeOf(command: string | null, evidence: readonly string[] = []): Place | undefined {
  for (const [pattern, place] of PLACES) {
    const [, api, second = ""] = pattern.exec(command ?? "") ?? [];
    if (api === undefined) continue;
    const found = place(api, second);
    return found.query === VERSIONS ? { ...found, query: { ...VERSIONS, ...pairIn(evidence) } } : found;
  }
  return undefined;
}

/** The versions of which a finding says that one replaced the other: the first digits of their ids. */
function pairIn(evidence: readonly string[]): { from: string; to: string } | undefined {
  for (const line of evidence) {
    const [, to, from] = /^version ([0-9a-f]+)\S* replaced ([0-9a-f]+)/.exec(line) ?? [];
    if (from !== undefined && to !== undefined) return { from, to };
  }
  return undefined;
}
