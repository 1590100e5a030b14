/** Which APIs fail or are slow now: for what needs attention, and for the word beside each API. */
import type { RecentTraffic, Traffic } from "../../apis/traffic/recent-traffic.ts";
import type { Slowness } from "../../explain/finding.ts";
import type { Troubles } from "./attention.ts";
import { SlowApis } from "./slow-apis.ts";

/** An explanation judges the requests of the last five minutes. */
const JUDGED_MS = 330_000;

/** What an explanation of an API says of its requests, so that its page and the overview agree. */
export interface Verdicts {
  slowness: (name: string) => Promise<Slowness | undefined>;
  /** Cheap, from what is in memory. `error`: most of them. */
  failingNow: (name: string) => "error" | "warning" | undefined;
  /** Whether requests that failed over whole minutes still do. Cheap as well. */
  stillFails: (name: string) => boolean;
}

interface VerdictDeps {
  reports: { traffic: RecentTraffic };
}

export class RequestVerdicts {
  private readonly deps: VerdictDeps;
  private readonly verdicts: Verdicts;
  private readonly slow: SlowApis<Slowness>;

  constructor(deps: VerdictDeps, verdicts: Verdicts) {
    this.deps = deps;
    this.verdicts = verdicts;
    this.slow = new SlowApis(verdicts.slowness);
  }

  read(byApi: ReadonlyMap<string, Traffic>, nowMs: number): Pick<Troubles, "failing" | "slow"> {
    return { failing: this.failing(byApi, nowMs), slow: this.slowOrLong(byApi, nowMs) };
  }

  private failing(byApi: ReadonlyMap<string, Traffic>, nowMs: number): Troubles["failing"] {
    const mayFail = (name: string) => {
      const last = this.deps.reports.traffic.lastErrors(name);
      return last !== undefined && nowMs - last.atMs < JUDGED_MS;
    };
    return new Map(
      [...byApi.keys()].filter(mayFail).flatMap((name) => {
        const severity = this.verdicts.failingNow(name);
        return severity === undefined ? [] : [[name, severity] as const];
      }),
    );
  }

  /** What explanations found seconds ago. They may have failed for a while then, and no longer. */
  private slowOrLong(byApi: ReadonlyMap<string, Traffic>, nowMs: number): Troubles["slow"] {
    const busy = [...byApi].filter(([, { requests_per_s, in_flight }]) => requests_per_s + in_flight > 0);
    const found = this.slow.read(
      busy.map(([name]) => name),
      () => this.deps.reports.traffic.durations(nowMs),
      nowMs,
    );
    const isNow = ([name, { kind }]: [string, Slowness]) => kind === "slow" || this.verdicts.stillFails(name);
    return new Map([...found].filter(isNow));
  }
}
