/**
 * Collects the number of requests in flight, and sets the replica counts from it. Gateways report once a second. The
 * last report of a gateway that is gone still counts for a few seconds.
 */
import { contain } from "../../base/boundary.ts";
import type { Service } from "../../base/service.ts";
import { decideReplicas, type Recommendation, type Sample } from "./autoscaler.ts";
import type { Replicas } from "./replicas.ts";
import { scalingRules } from "./scaling-rules.ts";

const SAMPLE_EVERY_MS = 1_000;
/** As in Cortex, or more often if the window is shorter. */
const DECIDE_EVERY_MS = 10_000;
const REPORT_COUNTS_MS = 3_500;

interface Tracked {
  startedMs: number;
  decidedMs: number;
  samples: Sample[];
  recommendations: Recommendation[];
}

export class Autoscaling implements Service {
  private readonly replicas: Replicas;
  private readonly reports = new Map<string, { atMs: number; inFlight: ReadonlyMap<string, number> }>();
  private readonly tracked = new Map<string, Tracked>();
  private timer: NodeJS.Timeout | undefined;

  constructor(replicas: Replicas) {
    this.replicas = replicas;
  }

  async start(): Promise<void> {
    this.timer = setInterval(() => this.runOnce(performance.now()), SAMPLE_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
  }

  /** A gateway reports its requests that wait or run, by API. */
  report(gateway: string, inFlight: ReadonlyMap<string, number>): void {
    this.reports.set(gateway, { atMs: performance.now(), inFlight });
  }

  /** A request has arrived while there was no replica. */
  wake(api: string): void {
    const group = this.replicas.group(api);
    if (group === undefined || group.wanted > 0) return;
    this.tracked.delete(api);
    this.replicas.setWanted(api, 1, "woken by a request");
  }

  runOnce(nowMs: number): void {
    for (const [gateway, { atMs }] of this.reports)
      if (nowMs - atMs > REPORT_COUNTS_MS) this.reports.delete(gateway);
    for (const name of this.tracked.keys())
      if (this.replicas.group(name) === undefined) this.tracked.delete(name);
    for (const name of this.replicas.names)
      contain(`the number of replicas of ${name}`, () => this.look(name, nowMs));
  }

  private look(name: string, nowMs: number): void {
    const group = this.replicas.group(name)!;
    const rules = scalingRules(group.version.config);
    const inFlight = this.inFlight(name);
    if (group.wanted === 0 && inFlight > 0) return this.wake(name);
    const tracked = this.track(name, nowMs);
    tracked.samples.push({ atMs: nowMs, inFlight });
    tracked.samples = tracked.samples.filter(({ atMs }) => atMs > nowMs - rules.windowMs);
    if (rules.min === rules.max) return;
    if (nowMs - tracked.decidedMs < Math.min(DECIDE_EVERY_MS, rules.windowMs) - SAMPLE_EVERY_MS / 2) return;
    tracked.decidedMs = nowMs;
    const { replicas, recommended, reason } = decideReplicas(rules, group.wanted, tracked, nowMs);
    const longest = Math.max(rules.downscaleAfterMs, rules.upscaleAfterMs);
    tracked.recommendations.push({ atMs: nowMs, replicas: recommended });
    tracked.recommendations = tracked.recommendations.filter(({ atMs }) => atMs > nowMs - longest);
    this.replicas.setWanted(name, replicas, reason);
  }

  private track(name: string, nowMs: number): Tracked {
    const known = this.tracked.get(name);
    if (known !== undefined) return known;
    const tracked = { startedMs: nowMs, decidedMs: nowMs, samples: [], recommendations: [] };
    this.tracked.set(name, tracked);
    return tracked;
  }

  private inFlight(name: string): number {
    let sum = 0;
    for (const { inFlight } of this.reports.values()) sum += inFlight.get(name) ?? 0;
    return sum;
  }
}
