/** Explains the speed of an API, and nothing else of it: the overview asks about many. */
import { wallMs } from "../../base/clock.ts";
import { troubleNow } from "../../explain/api/explain-api.ts";
import { slownessFindings } from "../../explain/api/traffic-findings.ts";
import type { Slowness } from "../../explain/finding.ts";
import { rolloutFacts } from "./api-facts.ts";
import type { ExplainDeps } from "./explain-deps.ts";
import { trafficFacts } from "./traffic-facts.ts";

/** Undefined if its requests are not slow, or no more so than in the hours before, and have not failed for a while. */
export async function slowness(deps: ExplainDeps, name: string): Promise<Slowness | undefined> {
  const group = deps.replicas.group(name);
  if (group === undefined) return undefined;
  const traffic = trafficFacts(deps, name, group.version);
  const [now] = slownessFindings({ name, rollout: rolloutFacts(deps, group), traffic });
  if (now !== undefined) return { kind: "slow", title: now.title };
  const troubles = await deps.pasts.of(name, wallMs() / 1000);
  for (const trouble of troubles) {
    const { severity, title } = troubleNow(trouble, { traffic });
    if (severity !== "info") return { kind: trouble.kind, title };
  }
  return undefined;
}
