/**
 * Sends messages to SQS until the queue has them or permanently refuses them. Jobs do not wait for it. A message is
 * deleted once SQS has confirmed it. A kill in between sends it again (FIFO queues drop the second).
 */
import { reportFault } from "../../base/boundary.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { LETTERS_A_REQUEST } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { setLetterError } from "../records/batch-rows.ts";
import { type DeadLetter, deleteLetters, lettersToSend } from "./letters.ts";
import { sqsQueues } from "./queue-counts.ts";
import { type Delivered, requestsOf } from "./sqs.ts";

const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 15_000;

export interface OutboxDeps {
  db: Database;
  log: Log;
  send: (queue: string, letters: readonly DeadLetter[]) => Promise<Delivered>;
  /** Writes to the log of the job whose message waits or is refused. */
  jobLog: (jobId: string, line: string) => void;
}

interface Pause {
  untilMs: number;
  ms: number;
}

export class Outbox implements Service {
  private readonly deps: OutboxDeps;
  /** Queues that did not respond, and when they are tried again. */
  private readonly pauses = new Map<string, Pause>();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private isAgain = false;
  private isStopped = false;

  constructor(deps: OutboxDeps) {
    this.deps = deps;
  }

  async start(): Promise<void> {
    this.wake();
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  /** Call when there may be messages to send. Returns at once. */
  wake(): void {
    this.isAgain = true;
    if (this.isStopped || this.running !== undefined) return;
    this.running = this.work()
      .catch((error: Error) =>
        this.deps.log.error({ err: error }, "messages could not be sent to a dead letter queue"),
      )
      .finally(() => {
        this.running = undefined;
        this.wakeLater();
      });
  }

  /** Sends all waiting messages, once. */
  async runOnce(): Promise<void> {
    const queues = await sqsQueues(this.deps.db);
    // The pause of a queue without messages would have the outbox woken again and again.
    const waiting = new Set(queues);
    for (const queue of this.pauses.keys()) if (!waiting.has(queue)) this.pauses.delete(queue);
    await Promise.all(queues.map((queue) => this.sendAll(queue).catch((error) => this.faulty(queue, error))));
  }

  /** Handles an error of one queue: it is retried after a while, and the others continue. */
  private faulty(queue: string, error: unknown): void {
    reportFault(error, `the messages for ${queue}`);
    this.pauses.set(queue, { ms: PAUSE_MAX_MS, untilMs: performance.now() + PAUSE_MAX_MS });
  }

  private async work(): Promise<void> {
    while (this.isAgain && !this.isStopped) {
      this.isAgain = false;
      await this.runOnce();
    }
  }

  private wakeLater(): void {
    const untilMs = Math.min(...[...this.pauses.values()].map((pause) => pause.untilMs));
    if (this.isStopped || untilMs === Number.POSITIVE_INFINITY) return;
    this.timer = setTimeout(() => this.wake(), Math.max(0, untilMs - performance.now()));
  }

  private async sendAll(queue: string): Promise<void> {
    const pause = this.pauses.get(queue);
    if (pause !== undefined && pause.untilMs > performance.now()) return;
    for (let after = ""; !this.isStopped; ) {
      const letters = await lettersToSend(this.deps.db, queue, after, LETTERS_A_REQUEST);
      if (letters.length === 0) break;
      for (const request of requestsOf(letters)) {
        if (!(await this.sendSome(queue, request))) return;
      }
      after = letters[letters.length - 1]!.message_id;
    }
    this.pauses.delete(queue);
  }

  /** False if the queue does not respond or is too busy: it is paused. */
  private async sendSome(queue: string, letters: DeadLetter[]): Promise<boolean> {
    try {
      const { sent, refused } = await this.deps.send(queue, letters);
      await this.settle(sent, refused);
      return (
        sent.length + refused.length === letters.length || this.waitFor(queue, letters, "it is too busy")
      );
    } catch (error) {
      const { name, message } = error as Error;
      return this.waitFor(queue, letters, message || name);
    }
  }

  private async settle(sent: DeadLetter[], refused: Delivered["refused"]): Promise<void> {
    const { db, jobLog } = this.deps;
    await db.transaction(async (tx) => {
      for (const { letter, reason } of refused) await setLetterError(tx, letter, reason);
      const gone = [...sent, ...refused.map(({ letter }) => letter)].map(({ message_id }) => message_id);
      if (gone.length > 0) await deleteLetters(tx, gone);
    });
    for (const { letter, reason } of refused)
      jobLog(
        letter.job_id,
        `the dead letter queue refused the message about batch ${letter.batch_index}: ${reason}`,
      );
  }

  private waitFor(queue: string, letters: DeadLetter[], why: string): false {
    const before = this.pauses.get(queue);
    const ms = Math.min(before === undefined ? PAUSE_FIRST_MS : 2 * before.ms, PAUSE_MAX_MS);
    this.pauses.set(queue, { ms, untilMs: performance.now() + ms });
    if (before === undefined)
      this.deps.jobLog(
        letters[0]!.job_id,
        `messages wait for ${queue}: ${why}; they are sent as soon as it responds`,
      );
    return false;
  }
}
