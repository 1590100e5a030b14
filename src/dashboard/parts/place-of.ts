/** The page that shows what a command would print. Findings name commands; in the pages a link is shorter. Pure. */
export interface Place {
  text: string;
  segments: readonly string[];
  query?: Record<string, string>;
}

const LOGS = { tab: "logs" };
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
    /^quern job failures (\S+) (\S+)/,
    (api, job) => ({ text: "Open the failures", segments: ["jobs", api, job], query: { tab: "failures" } }),
  ],
  [/^quern logs (\S+)$/, (api) => ({ text: "Open the logs", segments: ["apis", api], query: LOGS })],
  [
    /^quern rollback (\S+)/,
    (api) => ({ text: "Compare the versions", segments: ["apis", api], query: { tab: "versions" } }),
  ],
];

/** Undefined if no page shows it. */
export function placeOf(command: string | null): Place | undefined {
  for (const [pattern, place] of PLACES) {
    const [, api, second = ""] = pattern.exec(command ?? "") ?? [];
    if (api !== undefined) return place(api, second);
  }
  return undefined;
}
