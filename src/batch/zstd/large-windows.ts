/** Bounds how many large windows this process holds at once. Other files wait, in the order of their arrival. */
import { LARGE_WINDOWS_MAX } from "../../contracts/limits/input-files.ts";

export class LargeWindows {
  private free: number;
  private readonly waiting = new Set<() => void>();

  constructor(free: number) {
    this.free = free;
  }

  /** Rejects, and takes none, if `signal` is aborted first. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.free > 0) this.free--;
    else await this.turn(signal);
  }

  release(): void {
    const [next] = this.waiting;
    if (next === undefined) this.free++;
    else next();
  }

  /** Whether somebody would get the next one that is released. */
  get isAwaited(): boolean {
    return this.waiting.size > 0;
  }

  get isFree(): boolean {
    return this.free > 0;
  }

  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        leave();
        resolve();
      };
      const give = () => {
        leave();
        reject(signal.reason as Error);
      };
      const leave = () => {
        this.waiting.delete(begin);
        signal.removeEventListener("abort", give);
      };
      this.waiting.add(begin);
      signal.addEventListener("abort", give, { once: true });
    });
  }
}

export const largeWindows = new LargeWindows(LARGE_WINDOWS_MAX);
