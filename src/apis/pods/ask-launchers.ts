/** Asks the launchers of pods whose worker does not listen yet what they are about. */
import { inBackground } from "../../base/boundary.ts";
import { HEALTH_PORT } from "../../kubernetes/objects/worker-pods.ts";
import { launcherState } from "../../kubernetes/pods/launcher.ts";
import type { PodGroup } from "./pod-group.ts";

/** `judge` is called for a group in which something has changed, with its face before. */
export function askLaunchers(
  groups: Iterable<PodGroup>,
  judge: (group: PodGroup, before: string) => void,
): void {
  for (const group of groups)
    for (const replica of group.workers) {
      const host = replica.address?.host;
      if (replica.state !== "initializing" || replica.isConnected || host === undefined) continue;
      const ask = launcherState(host, HEALTH_PORT).then((says) => {
        const isOver = replica.isConnected || replica.state !== "initializing";
        if (isOver || says === replica.launcherSays) return;
        const before = group.face;
        replica.launcherSays = says;
        judge(group, before);
      });
      inBackground(ask);
    }
}
