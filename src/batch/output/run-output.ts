/**
 * The output of one run of a job, which may end while its output is being opened. Whoever ends the run then has nothing
 * to close yet: the output is closed as soon as it is open.
 */
import type { JobOutput } from "./job-output.ts";

export class RunOutput<T extends Pick<JobOutput, "close"> = JobOutput> {
  private output: T | undefined;
  private isClosed = false;

  /** Resolves to what `opening` does. It is of use only if the run has not ended. */
  async opened(opening: Promise<T | undefined>): Promise<T | undefined> {
    const output = await opening;
    if (this.isClosed) await output?.close();
    else this.output = output;
    return output;
  }

  /** May be repeated. Does not wait for an output that is being opened: that may wait for disk space. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.output?.close();
  }
}
