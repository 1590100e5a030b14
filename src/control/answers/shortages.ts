/** The responses when the server lacks what a request needs: disk space, files, its database. */
import { describeShortage, isFault, shortageOf } from "../../base/disk-full.ts";
import { ServiceError } from "../../contracts/errors.ts";

/** A database that restarts or fails over is back within seconds. */
const RETRY_AFTER_S = 5;

export function shortageError(cause: unknown): ServiceError | undefined {
  if (isFault(cause)) {
    const message = `${describeShortage(cause)}, so nothing was recorded; repair it, and try again. The log of the database, or of the kernel (\`dmesg\`), says more`;
    return new ServiceError("server_unavailable", message, { cause, retryAfterS: RETRY_AFTER_S });
  }
  const shortage = shortageOf(cause);
  if (shortage === undefined) return undefined;
  if (shortage === "handles") {
    const cure =
      "raise the limits of its service (LimitNOFILE, TasksMax; `ulimit -n`), or try again when it is less busy";
    const message = `the server cannot open more files or start more processes, so nothing was recorded; ${cure}`;
    return new ServiceError("server_unavailable", message, { cause, retryAfterS: 1 });
  }
  const message = `${describeShortage(cause)}, so nothing was recorded; free disk space (\`quern doctor\` on the server shows what uses it) and try again`;
  return new ServiceError("disk_full", message, { cause });
}

/** `cause` is known by its name: the database is none of the rooms that this one may import. */
export function databaseError(cause: unknown): ServiceError | undefined {
  for (let at = cause; at instanceof Error; at = at.cause)
    if (at.name === "DatabaseUnavailable") return outOfReach(at.message, cause);
  return undefined;
}

export function outOfReach(message: string, cause?: unknown): ServiceError {
  return new ServiceError("database_unavailable", message, { cause, retryAfterS: RETRY_AFTER_S });
}
