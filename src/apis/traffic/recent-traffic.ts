/**
 * The requests of each API in the last minutes, for the overview: in memory, from the reports of gateways. A new
 * controller begins with the minutes that the series have.
 */
import type { ApiReport, Report, Tally } from "../../contracts/reports.ts";
import { type Counts, isReset, type Totals, totalsIn } from "./counts.ts";
import { isClear, type LastErrors, type SinceSwitch, TrafficOfApi } from "./traffic-of-api.ts";

/** With requests under way a gateway reports each second. What it said before that is over. */
const IN_FLIGHT_MS = 10_000;
/** A gateway that has not reported for this long is gone. */
const GONE_AFTER_MS = 180_000;
/** An API without a request for so long takes no memory any more. */
const FORGOTTEN_AFTER_MS = 31 * 60_000;

export interface Traffic {
  requests_per_s: number;
  errors_per_s: number;
  /** Null without a request in the last minute. */
  latency_p50_s: number | null;
  latency_p99_s: number | null;
  in_flight: number;
  queue_depth: number;
  /** The requests of each of the last 30 minutes, the current one last. */
  recent: number[];
}

interface Gateway {
  counts: Map<string, Totals>;
  present: readonly ApiReport[];
  atMs: number;
}

export class RecentTraffic {
  /** The version of an API that serves alone; undefined while several do, or none. */
  servedAlone: (name: string) => string | undefined = () => undefined;
  private readonly gateways = new Map<string, Gateway>();
  private readonly apis = new Map<string, TrafficOfApi>();
  private readonly startedMs: number;

  /** `nowMs` is monotonic, as all times here. */
  constructor(nowMs: number) {
    this.startedMs = nowMs;
  }

  /** What gateways had reported to former controllers: later totals contain it. */
  knowBefore(stored: ReadonlyMap<string, readonly (readonly [string, Tally])[]>, nowMs: number): void {
    for (const [gateway, tallies] of stored) {
      const counts = new Map(tallies.map(([name, tally]) => [name, totalsIn(tally, undefined)]));
      if (!this.gateways.has(gateway)) this.gateways.set(gateway, { counts, present: [], atMs: nowMs });
    }
  }

  /** The minutes before this controller started, in order. `agoMs`: since the middle of each. */
  restore(minutes: readonly (Counts & { api: string; agoMs: number })[], nowMs: number): void {
    for (const { api, agoMs, ...counts } of minutes) this.of(api, nowMs).restore(counts, nowMs - agoMs);
  }

  take({ gateway, apis }: Pick<Report, "gateway" | "apis">, nowMs: number): void {
    const before = this.gateways.get(gateway)?.counts;
    const counts = new Map<string, Totals>();
    for (const { name, tally } of apis) {
      const former = before?.get(name);
      const now = totalsIn(tally, former);
      counts.set(name, now);
      const isSame = former !== undefined && former.requests === now.requests;
      if (isSame || now.requests === 0) continue;
      const api = this.of(name, nowMs);
      api.add(now, isReset(former, now.requests) ? undefined : former, nowMs);
      const version = this.servedAlone(name);
      if (version !== undefined) api.serves(version, nowMs, now.failed);
    }
    this.gateways.set(gateway, { counts, present: apis, atMs: nowMs });
    this.forgetOld(nowMs);
  }

  /** The traffic of each API that had any lately; `idle`, always the same, is that of all others. */
  read(nowMs: number): { idle: Traffic; byApi: ReadonlyMap<string, Traffic> } {
    const sums = this.present(nowMs);
    const forMs = nowMs - this.startedMs;
    const read = (api: TrafficOfApi | undefined, name: string): Traffic => {
      const { in_flight = 0, queue_depth = 0 } = sums.get(name) ?? {};
      return { ...(api ?? NONE).read(nowMs, forMs), in_flight, queue_depth };
    };
    const names = new Set([...this.apis.keys(), ...sums.keys()]);
    return {
      idle: IDLE,
      byApi: new Map([...names].map((name) => [name, read(this.apis.get(name), name)])),
    };
  }

  /** The newest errors of an API; undefined if none are known. */
  lastErrors(name: string): LastErrors | undefined {
    return this.apis.get(name)?.lastErrors;
  }

  /** The newest errors that no gateway itself made: predict() failed. Undefined if none are known. */
  lastFailures(name: string): LastErrors | undefined {
    return this.apis.get(name)?.lastFailures;
  }

  /**
   * What came to an API since another version serves it alone. Undefined if none is known to have taken over, or if it
   * is not clear yet which of the two had the failures around that.
   */
  sinceSwitch(name: string): SinceSwitch | undefined {
    const since = this.apis.get(name)?.sinceSwitch;
    return since !== undefined && isClear(since) ? since : undefined;
  }

  /** For each API how long its requests took in each of the last minutes, by bucket. */
  durations(nowMs: number): Map<string, (readonly number[])[]> {
    return new Map([...this.apis].map(([name, api]) => [name, api.durations(nowMs)]));
  }

  private present(nowMs: number): Map<string, Pick<Traffic, "in_flight" | "queue_depth">> {
    const sums = new Map<string, Pick<Traffic, "in_flight" | "queue_depth">>();
    for (const { present, atMs } of this.gateways.values()) {
      if (nowMs - atMs >= IN_FLIGHT_MS) continue;
      for (const { name, in_flight, waiting } of present) {
        if (in_flight === 0 && waiting === 0) continue;
        const sum = sums.get(name) ?? { in_flight: 0, queue_depth: 0 };
        sums.set(name, { in_flight: sum.in_flight + in_flight, queue_depth: sum.queue_depth + waiting });
      }
    }
    return sums;
  }

  private of(name: string, nowMs: number): TrafficOfApi {
    const api = this.apis.get(name) ?? new TrafficOfApi(nowMs);
    this.apis.set(name, api);
    return api;
  }

  private forgetOld(nowMs: number): void {
    for (const [gateway, { atMs }] of this.gateways)
      if (nowMs - atMs > GONE_AFTER_MS) this.gateways.delete(gateway);
    for (const [name, { lastMs }] of this.apis)
      if (nowMs - lastMs > FORGOTTEN_AFTER_MS) this.apis.delete(name);
  }
}

const NONE = new TrafficOfApi(0);
/** Always the same object, so that nothing looks changed. */
const IDLE: Traffic = { ...NONE.read(0, 0), in_flight: 0, queue_depth: 0 };
