/** Keeps a part of a disk free from the copies that jobs make, so that everything else goes on. */
import { statfs } from "node:fs/promises";
import { DiskNearlyFull } from "../disk-full.ts";

/** The part of a disk that copies leave free, and its most. */
const SHARE_LEFT = 0.1;
const LEFT_MAX_BYTES = 1024 ** 3;

/** Throws DiskNearlyFull if the directory's disk would have too little space left after `bytes` more. */
export async function leaveFree(directory: string, bytes: number): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(directory);
  const left = Math.min(LEFT_MAX_BYTES, blocks * bsize * SHARE_LEFT);
  const free = bavail * bsize;
  if (free - bytes >= left) return;
  const [freeMiB, leftMiB] = [free, left].map((n) => Math.floor(n / 2 ** 20));
  throw new DiskNearlyFull(
    `${freeMiB} MiB of the server's disk are free, and copies of input leave ${leftMiB} MiB for everything else`,
  );
}
