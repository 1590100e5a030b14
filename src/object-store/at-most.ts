/**
 * Runs at most so many works at once. The others begin in the order in which they came. With `waitMs`, nobody waits
 * longer, but a work that hangs keeps its place: it also keeps its thread.
 */
export class AtMost {
  private readonly max: number;
  private readonly waitMs: number | undefined;
  private readonly waiting = new Set<() => void>();
  private running = 0;

  constructor(max: number, waitMs?: number) {
    this.max = max;
    this.waitMs = waitMs;
  }

  /** Rejects as the work does, or with `TookTooLong`. A work that did not begin in time never begins. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const late = () => {
        this.waiting.delete(begin);
        reject(new TookTooLong(`took longer than ${this.waitMs} ms`));
      };
      const timer = this.waitMs === undefined ? undefined : setTimeout(late, this.waitMs);
      const end = () => {
        clearTimeout(timer);
        this.leave();
      };
      const begin = () => {
        work().then(resolve, reject).then(end, end);
      };
      if (this.running === this.max) {
        this.waiting.add(begin);
        return;
      }
      this.running++;
      begin();
    });
  }

  /** The next one gets the place of this one. */
  private leave(): void {
    const [next] = this.waiting;
    if (next === undefined) {
      this.running--;
      return;
    }
    this.waiting.delete(next);
    next();
  }
}

export class TookTooLong extends Error {}
