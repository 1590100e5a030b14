/** Builds the recorder of the series: what replicas, reports and the compute account say now. */

import type { Reports } from "../apis/reports.ts";
import type { ApiReplicas } from "../apis/serving/api-replicas.ts";
import { type Levels, UNKNOWN } from "../series/levels.ts";
import { SeriesRecorder } from "../series/recorder.ts";
import type { Infrastructure } from "./infrastructure.ts";

export function buildSeries(
  { db, log, account }: Infrastructure,
  { replicas, reports }: { replicas: ApiReplicas; reports: Reports },
): SeriesRecorder {
  const levels = () => {
    const { inFlight, waiting } = reports.underWay();
    const all = new Map<string, Levels>();
    const sums = { replicas: 0, in_flight: 0, queue_depth: 0 };
    for (const name of replicas.names) {
      const { serving, perReplica } = replicas.group(name)!;
      const of = {
        replicas: Math.floor(serving.length / perReplica),
        in_flight: inFlight.get(name) ?? 0,
        queue_depth: waiting.get(name) ?? 0,
      };
      all.set(name, { ...UNKNOWN, ...of });
      for (const key of ["replicas", "in_flight", "queue_depth"] as const) sums[key] += of[key];
    }
    const { total, available } = account;
    return all.set("", { ...sums, cpus: (total.cpuMillis - available.cpuMillis) / 1000 });
  };
  return new SeriesRecorder({ db, log, levels });
}
