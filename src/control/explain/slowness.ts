/** Explains the speed of an API, and nothing else of it: the overview asks about many. */
import { wallMs } from "../../base/clock.ts";
import { slownessFindings } from "../../explain/api/traffic-findings.ts";
import { rolloutFacts, trafficFacts } from "./api-facts.ts";
import type { ExplainDeps } from "./explain-deps.ts";

/** The title of the finding; undefined if its requests are not slow, or no more so than in the hours before. */
export async function slowness(deps: ExplainDeps, name: string): Promise<string | undefined> {
  const group = deps.replicas.group(name);
  if (group === undefined) return undefined;
  const facts = { name, rollout: rolloutFacts(deps, group), traffic: trafficFacts(deps, group.version) };
  const [now] = slownessFindings(facts);
  if (now !== undefined) return now.title;
  const past = await deps.pasts.of(name, wallMs() / 1000);
  return past?.cause === "became_slow" ? past.title : undefined;
}
