/**
 * Ends what workers of a former controller do in pods, and counts the batches that they had in hand, as
 * ../workers/former-workers.ts does for processes of this machine. The pods stay: their launchers start new workers.
 */
import { delay } from "../../base/clock.ts";
import { LAST_EXIT_POLL_MS, LAST_EXIT_WAIT_MS } from "../../contracts/limits/kubernetes/pods.ts";
import type { Database } from "../../database/database.ts";
import { type LauncherAt, launcherFacts, signalWorker } from "../../kubernetes/pods/launcher.ts";
import { addInterruptions } from "../records/interrupted-batches.ts";
import type { JobPod } from "./job-pod.ts";

export interface FormerPodsDeps {
  db: Database;
  launcherOf: (pod: JobPod) => LauncherAt | undefined;
  /** A pod that does not answer may still run a worker. */
  remove: (pod: JobPod) => void;
}

/** Resolves once none of these pods runs a former controller's worker that can be reached. */
export async function settleFormerPods(deps: FormerPodsDeps, pods: readonly JobPod[]): Promise<void> {
  const inHand = await Promise.all(pods.map((pod) => settle(deps, pod)));
  const noted = inHand.flatMap((batch_index, at) =>
    batch_index === undefined ? [] : [{ job_id: pods[at]!.jobId, batch_index }],
  );
  // One commit, so that a kill neither forgets an interruption nor counts one twice.
  if (noted.length > 0) await deps.db.transaction((tx) => addInterruptions(tx, noted));
  for (const pod of pods) pod.isSettled = true;
}

/** The batch that its worker had in hand. */
async function settle({ launcherOf, remove }: FormerPodsDeps, pod: JobPod): Promise<number | undefined> {
  const launcher = launcherOf(pod);
  // It has not begun yet, or is over.
  if (launcher === undefined || pod.over !== undefined) return undefined;
  const before = await launcherFacts(launcher);
  if (before === undefined && pod.state.phase === "ready") remove(pod);
  if (before === undefined || before.pid === null || before.state === "starting") return undefined;
  await signalWorker(launcher, before.pid, "SIGKILL");
  const endMs = performance.now() + LAST_EXIT_WAIT_MS;
  while (performance.now() < endMs && pod.over === undefined) {
    const facts = await launcherFacts(launcher);
    if (facts !== undefined && facts.starts !== before.starts) return busyBatch(facts.last_exit?.note);
    if (facts?.pid === null) return busyBatch(facts.last_exit?.note);
    await delay(LAST_EXIT_POLL_MS);
  }
  remove(pod);
  return undefined;
}

function busyBatch(note: { busy: boolean; batch_index: number } | null | undefined): number | undefined {
  return note?.busy ? note.batch_index : undefined;
}
