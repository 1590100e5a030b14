/** Runs at most so many works at once. The others begin in the order in which they came. */
export class AtMost {
  private readonly max: number;
  private readonly waiting: (() => void)[] = [];
  private running = 0;

  constructor(max: number) {
    this.max = max;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running < this.max) this.running++;
    else await new Promise<void>((begin) => this.waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      // The next one gets the place of this one.
      if (next === undefined) this.running--;
      else next();
    }
  }
}
