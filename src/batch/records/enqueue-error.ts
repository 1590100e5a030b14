/** Why the input of a job cannot be enqueued. */

/** The input is invalid; the job ends `status_enqueue_failed` with this message. */
export class EnqueueError extends Error {
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}
