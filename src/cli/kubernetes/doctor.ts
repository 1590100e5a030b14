/**
 * `quern doctor --namespace`: checks the pods of Quern in a cluster, with the cluster's own reasons. With `--wait` it
 * follows them until all are ready.
 */
import { parseDurationMs } from "../../contracts/config/durations.ts";
import {
  type CliContext,
  CliError,
  type ClusterFound,
  EXIT,
  type FollowedCluster,
  type PodFound,
} from "../server/context.ts";
import { type Finding, showFindings } from "../terminal/findings.ts";
import { LABEL_SELECTOR, NAME } from "./manifest.ts";

const WAIT_DEFAULT = "5m";

export interface ClusterDoctorOptions {
  namespace: string;
  /** True without a duration. */
  wait?: string | true;
}

export async function clusterDoctor(
  context: CliContext,
  { namespace, wait }: ClusterDoctorOptions,
): Promise<number> {
  const waitMs = wait === undefined ? undefined : durationOf(wait === true ? WAIT_DEFAULT : wait);
  const cluster = await context.openCluster({ namespace, labelSelector: LABEL_SELECTOR, owner: NAME });
  try {
    const first = await cluster.read();
    const isReady =
      waitMs === undefined || !("pods" in first) || (await untilReady(context, cluster, waitMs));
    const found = waitMs === undefined ? first : await cluster.read();
    const exit = await showFindings(context, clusterFindings(namespace, found));
    return isReady ? exit : EXIT.timeout;
  } finally {
    await cluster.close();
  }
}

function durationOf(text: string): number {
  const ms = parseDurationMs(text);
  if (ms === undefined)
    throw new CliError(`--wait must be a duration such as 90s or 5m (got "${text}")`, EXIT.usage);
  return ms;
}

/** Follows the pods until all are ready, and prints each change. False if that takes longer than `waitMs`. */
function untilReady(context: CliContext, cluster: FollowedCluster, waitMs: number): Promise<boolean> {
  const said = new Map<string, string>();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), waitMs);
    const onPods = (pods: PodFound[]) => {
      for (const pod of pods) {
        if (said.get(pod.name) === describePod(pod)) continue;
        said.set(pod.name, describePod(pod));
        context.err(`pod ${pod.name}: ${describePod(pod)}\n`);
      }
      if (pods.length === 0 || pods.some(({ phase }) => phase !== "ready")) return;
      clearTimeout(timer);
      resolve(true);
    };
    cluster.follow(onPods, (error) => context.err(`${error.message}; trying again\n`)).catch(reject);
  });
}

/** What was found, as rows. Pure. */
export function clusterFindings(namespace: string, found: ClusterFound): Finding[] {
  const check = "cluster";
  if (!("pods" in found)) return [{ check, result: "fail", detail: found.detail, cure: found.cure }];
  const { server, version, pods, lack } = found;
  const cluster: Finding = {
    check,
    result: "ok",
    detail: `${server}, Kubernetes ${version}, namespace ${namespace}`,
  };
  return [cluster, ...(pods.length === 0 ? [noPods(namespace, lack)] : pods.map(podFinding))];
}

function podFinding(pod: PodFound): Finding {
  const { name, phase, cure } = pod;
  const isFine = phase === "ready" || phase === "succeeded";
  // Without a reason it only takes its time.
  const result = isFine ? "ok" : pod.reason === undefined || pod.reason === "NotReady" ? "warn" : "fail";
  const words = cure?.replaceAll("POD", name);
  return {
    check: `pod ${name}`,
    result,
    detail: describePod(pod),
    ...(words === undefined ? {} : { cure: words }),
  };
}

function describePod({ phase, reason, detail }: PodFound): string {
  return detail === undefined ? phase : `${phase} (${reason}): ${detail}`;
}

function noPods(namespace: string, lack: string | undefined): Finding {
  const check = "pods";
  if (lack !== undefined)
    return {
      check,
      result: "fail",
      detail: lack,
      cure: "change what it names, such as a quota or a policy of the namespace",
    };
  const cure = `install Quern there: \`quern export kubernetes --namespace ${namespace} | kubectl apply -f -\``;
  return { check, result: "fail", detail: `no pod of Quern is in namespace ${namespace}`, cure };
}
