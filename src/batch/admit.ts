/**
 * What a running job writes to the server's disk leaves a part of it free: the job waits for that. A job that is to end
 * or pause does not wait, because its end needs little.
 */
import { DiskNearlyFull, whenDiskHasLeft } from "../base/disk-full.ts";
import { type Admit, leaveFree } from "../base/files/leave-free.ts";
import type { RunOfJob } from "./phase.ts";

export function admitOf(run: Pick<RunOfJob, "deps" | "diskWait" | "isEnding" | "isPausing">): Admit {
  const { deps, diskWait } = run;
  const look = async (...asked: Parameters<Admit>) => {
    try {
      if (!run.isPausing) await leaveFree(deps.dataDir, ...asked);
      return true;
    } catch (error) {
      if (run.isEnding && error instanceof DiskNearlyFull) return false;
      throw error;
    }
  };
  return (...asked) => whenDiskHasLeft(() => look(...asked), diskWait);
}
