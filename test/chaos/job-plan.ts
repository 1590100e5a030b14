/** A random job: what it is given, and which of its batches fail, and how. */

export type Fail = "always" | "first" | undefined;

/** Where a job keeps its predictions. */
export type OutputPlace = "none" | "server" | "directory" | "bucket";
const PLACES: readonly OutputPlace[] = ["none", "server", "directory", "bucket", "bucket"];

export interface JobPlan {
  /** Inline, or lines of a file. */
  isInline: boolean;
  batchSize: number;
  workers: number;
  /** So slow that one batch is at a worker at a time. */
  isSlow: boolean;
  maxAttempts: number;
  hasQueue: boolean;
  place: OutputPlace;
  isCompressed: boolean;
  /** The bytes of each prediction. Some outputs have several parts. */
  rowBytes: number;
  /** How each batch fails. */
  fails: Fail[];
}

/** Items of one batch in order; the first says how the batch fails. */
export function itemsOf({ fails, batchSize }: JobPlan, batch: number): Record<string, unknown>[] {
  return Array.from({ length: batchSize }, (_, at) => {
    const id = batch * batchSize + at;
    const fail = at === 0 ? fails[batch] : undefined;
    return fail === undefined ? { id } : { id, fail };
  });
}

export function planJob(random: () => number): JobPlan {
  const isSlow = random() < 0.4;
  const isInline = random() < 0.5;
  const batches = Math.floor(
    isSlow ? 40 + random() * 160 : isInline ? 500 + random() * 1_500 : 5_000 + random() * 15_000,
  );
  const share = isSlow ? 0.1 : 0.005;
  const fails = Array.from({ length: batches }, (): Fail => {
    const dice = random();
    return dice < share ? "always" : dice < 2 * share ? "first" : undefined;
  });
  const hasQueue = random() < 0.7;
  return {
    isInline,
    isSlow,
    batchSize: 1 + Math.floor(random() * 4),
    workers: 1 + Math.floor(random() * 2),
    maxAttempts: hasQueue ? 1 + Math.floor(random() * 3) : 1,
    hasQueue,
    place: PLACES[Math.floor(random() * PLACES.length)]!,
    isCompressed: random() < 0.5,
    rowBytes: random() < 0.3 ? Math.floor(random() * 4_000) : 40,
    fails,
  };
}
