/**
 * Sends messages to SQS until the queue has them or permanently refuses them, or they are too old. Jobs do not wait for
 * it. Queues take turns (queue-turns.ts). A message is deleted once SQS has confirmed it. A kill in between sends it
 * again (FIFO queues drop the second).
 */
import { contain, reportFault } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { LETTERS_A_REQUEST, SQS_FAILED_PLACE_MS, SQS_GIVEN_UP_MS } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { setLetterError } from "../records/batch-rows.ts";
import { type DeadLetter, deleteLetters, lettersToSend } from "./letters.ts";
import { sqsQueues } from "./queue-counts.ts";
import { type NamedQueue, QueueTurns } from "./queue-turns.ts";
import { type Delivered, requestsOf } from "./sqs.ts";

/** The shortest time between two looks for pauses that are over. */
const RESUME_MS = 250;
/** After the queues could not be read from the database. */
const READ_AGAIN_MS = 15_000;

export interface OutboxDeps {
  db: Database;
  log: Log;
  send: (queue: string, letters: readonly DeadLetter[]) => Promise<Delivered>;
  /** Writes to the log of the job whose message waits or is refused. */
  jobLog: (jobId: string, line: string) => void;
}

/** Messages that a queue did not take, and why; none if an exception prevented it. */
interface Untaken {
  letters: readonly DeadLetter[];
  why: string;
}

export class Outbox implements Service {
  private readonly deps: OutboxDeps;
  private readonly turns = new QueueTurns();
  private readonly working = new Set<Promise<void>>();
  private timer: NodeJS.Timeout | undefined;
  private isReading = false;
  private readAgain = false;
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
    await Promise.all(this.working);
  }

  /** Call when there may be messages to send: for this queue, or for any. Returns at once. */
  wake(named?: NamedQueue): void {
    if (this.isStopped) return;
    if (named === undefined) return this.readSoon();
    this.turns.add(named);
    this.fill();
  }

  private readSoon(): void {
    this.readAgain = true;
    if (this.isReading) return;
    this.isReading = true;
    this.track(this.readQueues());
  }

  /** Finds the queues that have messages. */
  private async readQueues(): Promise<void> {
    try {
      while (this.readAgain) {
        this.readAgain = false;
        for await (const named of sqsQueues(this.deps.db)) {
          if (this.isStopped) return;
          this.wake(named);
        }
      }
    } catch (error) {
      this.deps.log.error(
        { event: "outbox_unreadable", err: error },
        "the dead letter queues of SQS could not be read",
      );
      this.later(READ_AGAIN_MS, () => this.readSoon());
    } finally {
      this.isReading = false;
    }
  }

  /** Gives places to the queues whose turn it is. */
  private fill(): void {
    for (let queue = this.turns.next(); queue !== undefined; queue = this.turns.next())
      this.track(this.serve(queue));
  }

  private track(work: Promise<void>): void {
    const tracked = work.finally(() => this.working.delete(tracked));
    this.working.add(tracked);
  }

  /** One turn of a queue. An error of one queue does not end the others. */
  private async serve(queue: string): Promise<void> {
    let outcome: "sent" | "empty" | Untaken;
    try {
      outcome = await this.send(queue);
    } catch (error) {
      reportFault(error, `the messages for ${queue}`);
      outcome = { letters: [], why: "internal error" };
    }
    if (this.isStopped) return;
    if (outcome === "sent") this.turns.sent(queue);
    else if (outcome === "empty") this.turns.isEmpty(queue);
    else {
      const { letters, why } = outcome;
      this.later(SQS_FAILED_PLACE_MS, () => this.pause(queue, letters[0]?.job_id, why));
      return;
    }
    this.fill();
  }

  private pause(queue: string, jobId: string | undefined, why: string): void {
    const isFirst = this.turns.pause(queue, performance.now());
    this.resume();
    if (isFirst && jobId !== undefined)
      this.deps.jobLog(jobId, `messages wait for ${queue}: ${why}; they are sent as soon as it responds`);
  }

  /** Tries queues whose pause is over, now and later. */
  private resume(): void {
    const nextMs = this.turns.resume(performance.now());
    clearTimeout(this.timer);
    if (nextMs !== undefined)
      this.timer = this.later(Math.max(RESUME_MS, nextMs - performance.now()), () => this.resume());
    this.fill();
  }

  private later(ms: number, work: () => void): NodeJS.Timeout {
    return setTimeout(() => this.isStopped || contain("the messages for SQS", work), ms).unref();
  }

  /** Sends some messages of a queue. */
  private async send(queue: string): Promise<"sent" | "empty" | Untaken> {
    const letters = await lettersToSend(this.deps.db, queue, "", LETTERS_A_REQUEST);
    if (letters.length === 0) return "empty";
    for (const request of requestsOf(letters)) {
      const untaken = await this.sendRequest(queue, request);
      if (untaken !== undefined) return (await this.giveUp(queue, untaken)) ? "sent" : untaken;
    }
    return "sent";
  }

  /** Undefined if the queue has taken or refused all. */
  private async sendRequest(queue: string, letters: readonly DeadLetter[]): Promise<Untaken | undefined> {
    try {
      const { sent, refused } = await this.deps.send(queue, letters);
      await this.settle(sent, refused);
      const settled = new Set([...sent, ...refused.map(({ letter }) => letter)]);
      if (settled.size === letters.length) return undefined;
      return { letters: letters.filter((letter) => !settled.has(letter)), why: "it is too busy" };
    } catch (error) {
      const { name, message } = error as Error;
      return { letters, why: message || name };
    }
  }

  /** Whether messages were so old that they were given up. */
  private async giveUp(queue: string, { letters, why }: Untaken): Promise<boolean> {
    const before = new Date(wallMs() - SQS_GIVEN_UP_MS).toISOString();
    const old = letters.filter(({ sent_time }) => sent_time < before);
    if (old.length === 0) return false;
    const reason = `${queue} did not take it within ${SQS_GIVEN_UP_MS / 86_400_000} days: ${why}`;
    await this.settle(
      [],
      old.map((letter) => ({ letter, reason })),
    );
    return true;
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
        `the dead letter queue does not get the message about batch ${letter.batch_index}: ${reason}`,
      );
  }
}
