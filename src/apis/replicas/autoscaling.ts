/**
 * Collects the number of requests in flight, and sets the replica counts from it. Gateways report once a second. The
 * last report of a gateway that is gone still counts for a few seconds.
 */
import { contain } from "../../base/boundary.ts";
import { every } from "../../base/loop/pulse.ts";
import type { Service } from "../../base/service.ts";
import type { ApiReplicas } from "../serving/api-replicas.ts";
import { decideReplicas, type Recommendation, type Sample } from "./autoscaler.ts";
import { scalingRules } from "./scaling-rules.ts";

const SAMPLE_EVERY_MS = 1_000;
/** ... while there are no requests. One sample then stands for several. */
const SAMPLE_IDLE_MS = 2_000;
/** ... and no API has a replica that it could give up. */
const SAMPLE_AT_REST_MS = 4_000;
const SAMPLES_LEFT_OUT_MAX = 3;
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
  private readonly replicas: ApiReplicas;
  private readonly reports = new Map<string, { atMs: number; inFlight: ReadonlyMap<string, number> }>();
  private readonly tracked = new Map<string, Tracked>();
  private end = () => {};
  private everyMs = 0;

  constructor(replicas: ApiReplicas) {
    this.replicas = replicas;
  }

  async start(): Promise<void> {
    this.sampleEvery(SAMPLE_EVERY_MS);
  }

  async stop(): Promise<void> {
    this.end();
  }

  /** A gateway reports its requests that wait or run, by API. */
  report(gateway: string, inFlight: ReadonlyMap<string, number>): void {
    this.reports.set(gateway, { atMs: performance.now(), inFlight });
    if (isAny(inFlight)) this.sampleEvery(SAMPLE_EVERY_MS);
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
    const isIdle = ![...this.reports.values()].some(({ inFlight }) => isAny(inFlight));
    this.sampleEvery(isIdle ? this.idleMs : SAMPLE_EVERY_MS);
  }

  private get idleMs(): number {
    const groups = this.replicas.names.map((name) => this.replicas.group(name)!);
    const canShrink = groups.some(({ wanted, version }) => wanted > scalingRules(version.config).min);
    return canShrink ? SAMPLE_IDLE_MS : SAMPLE_AT_REST_MS;
  }

  private sampleEvery(ms: number): void {
    if (this.everyMs === ms) return;
    this.everyMs = ms;
    this.end();
    this.end = every(ms, "autoscaling", () => this.runOnce(performance.now()));
  }

  private look(name: string, nowMs: number): void {
    const group = this.replicas.group(name)!;
    const rules = scalingRules(group.version.config);
    const inFlight = this.inFlight(name);
    if (group.wanted === 0 && inFlight > 0) return this.wake(name);
    const tracked = this.track(name, nowMs);
    tracked.samples = [...tracked.samples, ...samplesUntil(nowMs, tracked.samples.at(-1), inFlight)].filter(
      ({ atMs }) => atMs > nowMs - rules.windowMs,
    );
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

/** The sample of now, and those that were left out since the last one: each second has the same weight. */
function samplesUntil(nowMs: number, last: Sample | undefined, inFlight: number): Sample[] {
  const seconds = last === undefined ? 1 : Math.round((nowMs - last.atMs) / SAMPLE_EVERY_MS);
  const count = Math.max(0, Math.min(SAMPLES_LEFT_OUT_MAX, seconds - 1));
  const leftOut = Array.from({ length: count }, (_, at) => ({
    atMs: nowMs - (count - at) * SAMPLE_EVERY_MS,
    inFlight: last!.inFlight,
  }));
  return [...leftOut, { atMs: nowMs, inFlight }];
}

function isAny(inFlight: ReadonlyMap<string, number>): boolean {
  return [...inFlight.values()].some((count) => count > 0);
}
