/** A random job: what it is given, and which of its batches fail, and how. */

export type Fail = "always" | "first" | undefined;

export interface JobPlan {
  /** Inline, or lines of a file. */
  isInline: boolean;
  batchSize: number;
  workers: number;
  /** So slow that one batch is at a worker at a time. */
  isSlow: boolean;
  maxAttempts: number;
  hasQueue: boolean;
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
    fails,
  };
}
