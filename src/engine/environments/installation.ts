/** An installation in progress: who waits for it. If nobody does any more, it is ended. */
import { EnvironmentError } from "./environment-error.ts";
import type { Interpreter } from "./interpreter.ts";

/** One installation, and those that wait for it. */
export class Installation {
  readonly work: Promise<Interpreter>;
  private readonly users = new Set<string>();
  /** On the clock of `performance.now()`, as `askedMs`, which is when it was last asked for. */
  readonly begunMs = performance.now();
  private askedMs = 0;
  private readonly ending = new AbortController();

  /** The signal ends the commands of the work. */
  constructor(work: (signal: AbortSignal) => Promise<Interpreter>) {
    this.work = this.run(work);
  }

  get isEnding(): boolean {
    return this.ending.signal.aborted;
  }

  isFor(user: string): boolean {
    return this.users.has(user);
  }

  join(user: string): void {
    this.users.add(user);
    this.askedMs = performance.now();
  }

  /** Ends it if none of `users` waits for it. They were read at `readMs`, on the clock of `performance.now()`. */
  endUnlessNeeded(users: ReadonlySet<string>, readMs: number): void {
    if (this.askedMs < readMs && ![...this.users].some((user) => users.has(user))) this.ending.abort();
  }

  private async run(work: (signal: AbortSignal) => Promise<Interpreter>): Promise<Interpreter> {
    try {
      return await work(this.ending.signal);
    } catch (error) {
      throw this.isEnding ? new EnvironmentError("nothing needs these packages any more") : error;
    }
  }
}
