/** On which nodes the pods of an API run. */

/** As in a pod's specification. */
export interface Toleration {
  key?: string | undefined;
  operator?: "Equal" | "Exists" | undefined;
  value?: string | undefined;
  effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute" | undefined;
  tolerationSeconds?: number | undefined;
}

/** A node that is gone takes its pods with it after half a minute, not after five. */
const LOST_SECONDS = 30;

/** `wanted`: those of the configuration, which come first. */
export function tolerationsOf(wanted: readonly Toleration[]): readonly Toleration[] {
  const lost = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map((key) => {
    return { key, operator: "Exists", effect: "NoExecute", tolerationSeconds: LOST_SECONDS } as const;
  });
  return [...wanted, ...lost.filter(({ key }) => !wanted.some((each) => each.key === key))];
}

/** Pods of an API on as many nodes as there are; one node is no reason not to run. */
export function spreadOf(matchLabels: Readonly<Record<string, string>>): readonly object[] {
  const topologyKey = "kubernetes.io/hostname";
  return [{ maxSkew: 1, topologyKey, whenUnsatisfiable: "ScheduleAnyway", labelSelector: { matchLabels } }];
}
