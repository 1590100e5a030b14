/** Waits for the stores of one job: its log says when it does, and its status for what. */
import type { Patience } from "../object-store/patient-store.ts";

export class StoreWait implements Patience {
  readonly signal: AbortSignal;
  private readonly jobLog: (line: string) => void;
  /** The last error of the store that the job waits for. */
  private error: string | undefined;

  /** `signal`: aborted when nobody waits any more. */
  constructor(jobLog: (line: string) => void, signal: AbortSignal) {
    this.jobLog = jobLog;
    this.signal = signal;
  }

  readonly onWait = ({ message }: Error, pauseMs: number): void => {
    this.error = message;
    this.jobLog(`${message}; trying again in ${pauseMs} ms`);
  };

  readonly onResume = (): void => {
    this.error = undefined;
  };

  /** Undefined if the job does not wait for a store. */
  describe(): string | undefined {
    return this.error === undefined ? undefined : `it tries again: ${this.error}`;
  }
}
