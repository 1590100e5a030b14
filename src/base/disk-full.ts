/** A full disk, whoever says so, and waiting until it is not. */

const CODES = new Set(["ENOSPC", "EDQUOT", "SQLITE_FULL", "53100"]);
const LOOK_AGAIN_MS = 1_000;

export function isDiskFull(error: unknown): boolean {
  const { code, message, cause } = (error ?? {}) as { code?: unknown; message?: unknown; cause?: unknown };
  if (CODES.has(String(code)) || /database or disk is full/.test(String(message))) return true;
  return cause !== undefined && isDiskFull(cause);
}

export interface RoomWait {
  /** Told once, when the waiting begins. */
  onWait: () => void;
  /** Aborted when nobody waits any more: the error is thrown then. */
  signal: AbortSignal;
}

/** Does `work`, again and again while the disk is full. */
export async function whenThereIsRoom<T>(work: () => Promise<T>, { onWait, signal }: RoomWait): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await work();
    } catch (error) {
      if (!isDiskFull(error) || signal.aborted) throw error;
      if (isFirst) onWait();
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
    }
  }
}
