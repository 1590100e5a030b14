/** How long work waits for a database that cannot be reached: a request a few seconds, a job as long as it takes. */
import { DATABASE_LEAVING_MS, DATABASE_WAIT_MS } from "../../contracts/limits/database.ts";
import { DatabaseUnavailable } from "../database.ts";
import { Later } from "./later.ts";

export class Patience {
  private readonly over = new Later<never>();
  private timer: NodeJS.Timeout | undefined;
  private readonly signal: AbortSignal | undefined;
  private readonly end = () => {
    this.isOver = true;
    this.over.reject(new DatabaseUnavailable(this.why(), false));
  };
  /** What is left to do at a shut-down still gets its try: a database that serves takes it at once. */
  private readonly endSoon = () => {
    this.timer = setTimeout(this.end, DATABASE_LEAVING_MS);
  };
  private readonly why: () => string;
  isOver = false;

  /**
   * Without a `signal` it ends after DATABASE_WAIT_MS, with one soon after that was aborted. `why`: what is waited for,
   * when it ends.
   */
  constructor(signal: AbortSignal | undefined, why: () => string) {
    this.why = why;
    this.signal = signal;
    if (signal === undefined) this.timer = setTimeout(this.end, DATABASE_WAIT_MS);
    else if (signal.aborted) this.endSoon();
    else signal.addEventListener("abort", this.endSoon, { once: true });
  }

  /** Rejects with `DatabaseUnavailable` if the patience ends before. */
  within<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.over.promise]);
  }

  /** Nobody waits any more. */
  done(): void {
    clearTimeout(this.timer);
    this.signal?.removeEventListener("abort", this.endSoon);
  }
}
