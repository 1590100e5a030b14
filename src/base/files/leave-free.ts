/** Keeps a part of a disk free from what callers and jobs put there, so that everything else goes on. */
import { statfs } from "node:fs/promises";
import { DiskNearlyFull } from "../disk-full.ts";

const MIB = 2 ** 20;

/** What leaves a part of the disk free: the share, and its most. */
export interface Part {
  name: string;
  share: number;
  bytesMax: number;
}

/** Copies stop first: then submissions still find space. */
export const COPIES: Part = { name: "copies of input", share: 0.1, bytesMax: 1024 * MIB };
export const SUBMISSIONS: Part = { name: "submissions", share: 0.05, bytesMax: 512 * MIB };
/** Jobs that run stop last: what is left then is for keys, stops, deployments and the records of all. */
export const PREDICTIONS: Part = { name: "predictions of jobs", share: 0.03, bytesMax: 256 * MIB };
/** The database's file never becomes smaller, so they stop before submissions do. */
export const FAILURES: Part = { name: "failed batches of jobs", share: 0.06, bytesMax: 640 * MIB };
/** Less than predictions, which they take the place of. */
export const OUTPUTS: Part = { name: "outputs of jobs", share: 0.02, bytesMax: 128 * MIB };

/** Resolves when so many bytes may be written. False: more should not come. */
export type Admit = (bytes: number, part: Part) => Promise<boolean>;

/** Bytes that are being written now, and may not be on the disk yet. */
let underWay = 0;

/** Writes so many bytes, unless too little space would be left then: throws DiskNearlyFull (`leaveFree`). */
export async function writeLeaving<T>(
  directory: string,
  bytes: number,
  part: Part,
  write: () => Promise<T>,
): Promise<T> {
  underWay += bytes;
  try {
    await leaveFree(directory, 0, part);
    return await write();
  } finally {
    underWay -= bytes;
  }
}

/** Throws DiskNearlyFull if the directory's disk would have less left than this part must leave, after `bytes` more. */
export async function leaveFree(
  directory: string,
  bytes: number,
  { name, share, bytesMax }: Part,
): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(directory);
  const left = Math.min(bytesMax, blocks * bsize * share);
  const free = bavail * bsize - underWay;
  if (free - bytes >= left) return;
  const [freeMiB, leftMiB] = [Math.max(0, free), left].map((n) => Math.floor(n / MIB));
  throw new DiskNearlyFull(
    `${freeMiB} MiB of the server's disk are free, and ${name} leave ${leftMiB} MiB for everything else`,
  );
}
