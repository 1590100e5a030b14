/** Which APIs have failed requests that are not over, for what needs attention. */
import type { RecentTraffic, Traffic } from "../../apis/traffic/recent-traffic.ts";
import { areOver } from "../../explain/api/traffic-findings.ts";
import type { Newest } from "./attention.ts";

/** The rates are those of the last minute, or of less time after a start: so they say the share only. */
export function newestErrors(
  traffic: RecentTraffic,
  byApi: ReadonlyMap<string, Traffic>,
  nowMs: number,
): Map<string, Newest> {
  const newest = new Map<string, Newest>();
  for (const [name, { recent, requests_per_s, errors_per_s }] of byApi) {
    if (errors_per_s === 0) continue;
    const requests = recent.slice(-2).reduce((sum, count) => sum + count, 0);
    const errors = (requests * errors_per_s) / requests_per_s;
    const last = traffic.lastErrors(name);
    const since = last && { agoS: (nowMs - last.atMs) / 1000, requestsSince: last.requestsSince };
    if (since === undefined || !areOver(errors, requests, since)) newest.set(name, { requests, errors });
  }
  return newest;
}
