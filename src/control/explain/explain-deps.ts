/** What gathering the facts of an explanation needs. */
import type { ComputeFacts, MemoryFacts } from "../../explain/facts.ts";
import type { SeriesDeps } from "../../series/read-series.ts";
import type { HealthRoutesDeps } from "../health.ts";
import type { JobRoutesDeps } from "../jobs/jobs.ts";
import type { RecentPasts } from "./past-facts.ts";
import type { TrafficSamples } from "./traffic-samples.ts";

export interface ExplainDeps extends HealthRoutesDeps, JobRoutesDeps {
  recent: TrafficSamples;
  /** What became slow in the last day. */
  pasts: RecentPasts;
  series: SeriesDeps;
  /** The account of compute, with all holders. */
  account: () => ComputeFacts;
  /** The memory of running workers, by their ids. */
  memoryOfWorkers: () => ReadonlyMap<string, MemoryFacts>;
  apiLogDirectory: (name: string) => string;
}
