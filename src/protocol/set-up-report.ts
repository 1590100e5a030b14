/**
 * How a worker's set-up ended. It says so once, with READY or INIT_FAILED: each of them makes the controller publish
 * routes, write logs or end a job, so a worker that repeats them would occupy it.
 */
import { ProtocolError } from "./frame-rules.ts";

export class SetUpReport {
  private hasCome = false;

  /** Throws if it has come before. */
  take(): void {
    if (this.hasCome) throw new ProtocolError("a worker reported the end of its set-up twice");
    this.hasCome = true;
  }
}
