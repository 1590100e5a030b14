/**
 * Runs work whose size callers choose in a thread, so that long input does not block the event loop. It runs one piece
 * at a time, with a time limit; senders take turns. The thread starts with the first piece, and ends after a while
 * without work. Its exceptions and its death are errors of the caller, not of the process. Waiting work is limited, for
 * each sender too, and is dropped when its caller leaves.
 */
import { parentPort, type Transferable, Worker } from "node:worker_threads";
import { inBackground } from "../base/boundary.ts";
import { FairTurns, type Turn } from "../base/fair/fair-turns.ts";
import { Shares } from "../base/fair/shares.ts";
import { type ErrorCode, type ErrorDetails, ServiceError } from "../contracts/errors.ts";
import { ASIDE_WAITING_BYTES_MAX, ASIDE_WAITING_OF_A_SENDER_MAX } from "../contracts/limits/event-loop.ts";
import { ERRORS_SHOWN_MAX } from "../contracts/limits/responses.ts";

/** A start takes some 100 ms. An idle thread is ended to free its memory. */
const IDLE_MS = 10_000;

export interface SideThreadOptions {
  /** The thread's program, which calls `serveThread`. */
  program: URL;
  /** The time limit of one piece of work. */
  limitMs: number;
  heapMiB: number;
  /** The error for work that takes more time or memory. */
  tooMuch: () => ServiceError;
}

export interface PieceOptions {
  /** Bytes that the task holds while it waits. */
  bytes: number;
  /** For whom it is done: a key, or a client's address. */
  sender: string;
  /** Buffers that are transferred, and become empty here. */
  transfer?: Transferable[];
  /** Aborted once nobody waits for the result. A piece that has not started is then dropped. */
  left?: AbortSignal | undefined;
}

interface Piece<Result> {
  resolve: (result: Result) => void;
  reject: (error: Error) => void;
}

type Reply<Result> =
  | { result: Result }
  | { refused: { code: ErrorCode; message: string; details: Pick<ErrorDetails, "fields" | "fieldsTotal"> } }
  | { fault: string };

/** A sender may have half of what may wait, and half of what others leave. */
const SENDER_SHARE = 1;

export class SideThread<Task, Result> {
  private readonly options: SideThreadOptions;
  private readonly turns = new FairTurns(ASIDE_WAITING_OF_A_SENDER_MAX);
  private readonly ofSenders = new Shares(SENDER_SHARE);
  private waitingBytes = 0;
  private current: Piece<Result> | undefined;
  private worker: Worker | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: SideThreadOptions) {
    this.options = options;
  }

  /** Throws what the program throws, or `queue_full` if too much waits or the caller has left. */
  async run(task: Task, options: PieceOptions): Promise<Result> {
    const turn = await this.wait(options);
    if (turn === "left") throw callerLeft();
    if (turn === "full") throw tooMuchWaits();
    try {
      return await this.work(task, options.transfer);
    } finally {
      this.current = undefined;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.end(), IDLE_MS).unref();
      this.turns.end();
    }
  }

  private async wait({ sender, bytes, left }: PieceOptions): Promise<Turn> {
    if (this.turns.isFree) return this.turns.take(sender, left);
    const remaining = ASIDE_WAITING_BYTES_MAX - this.waitingBytes - bytes;
    if (remaining < 0 || !this.ofSenders.fits(sender, bytes, remaining)) return "full";
    this.hold(sender, bytes);
    try {
      return await this.turns.take(sender, left);
    } finally {
      this.hold(sender, -bytes);
    }
  }

  private hold(sender: string, bytes: number): void {
    this.waitingBytes += bytes;
    this.ofSenders.add(sender, bytes);
  }

  private work(task: Task, transfer: Transferable[] | undefined): Promise<Result> {
    clearTimeout(this.timer);
    this.worker ??= this.start();
    this.timer = setTimeout(() => this.giveUp(), this.options.limitMs);
    const { worker } = this;
    return new Promise((resolve, reject) => {
      this.current = { resolve, reject };
      worker.postMessage(task, transfer);
    });
  }

  private start(): Worker {
    const worker = new Worker(this.options.program, {
      resourceLimits: { maxOldGenerationSizeMb: this.options.heapMiB },
      // The thread reads no variables of Quern's.
      env: {},
    });
    worker.on("message", (reply: Reply<Result>) => this.settle(reply));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      this.worker = undefined;
      this.current?.reject(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? this.options.tooMuch() : error);
    });
    worker.unref();
    return worker;
  }

  private settle(reply: Reply<Result>): void {
    const { current } = this;
    if ("result" in reply) current?.resolve(reply.result);
    else if ("fault" in reply) current?.reject(new Error(reply.fault));
    else {
      const { code, message, details } = reply.refused;
      current?.reject(new ServiceError(code, message, details));
    }
  }

  private giveUp(): void {
    this.end();
    this.current?.reject(this.options.tooMuch());
  }

  private end(): void {
    const { worker } = this;
    this.worker = undefined;
    worker?.removeAllListeners();
    // Errors during termination do not matter.
    worker?.on("error", () => {});
    if (worker !== undefined) inBackground(worker.terminate());
  }
}

function tooMuchWaits(): ServiceError {
  const message = "too much waits to be read in this process already; try again in a second";
  return new ServiceError("queue_full", message, { retryAfterS: 1 });
}

/** Nobody receives this error. */
function callerLeft(): ServiceError {
  return new ServiceError("queue_full", "the client disconnected before it was read", { retryAfterS: 1 });
}

/** The thread's side: responds to each task. `transferOf` selects what of a result is transferred instead of copied. */
export function serveThread<Task, Result>(
  work: (task: Task) => Result,
  transferOf: (result: Result) => Transferable[] = () => [],
): void {
  parentPort!.on("message", (task: Task) => {
    const reply = attempt(work, task);
    parentPort!.postMessage(reply, "result" in reply ? transferOf(reply.result) : []);
  });
}

function attempt<Task, Result>(work: (task: Task) => Result, task: Task): Reply<Result> {
  try {
    return { result: work(task) };
  } catch (error) {
    if (!(error instanceof ServiceError)) return { fault: (error as Error).stack ?? String(error) };
    const { code, message, details } = error;
    return { refused: { code, message, details: shown(details) } };
  }
}

/** A caller may have made a hundred thousand errors. Copying all of them would cost as much as the thread saves. */
function shown({ fields, fieldsTotal }: ErrorDetails): Pick<ErrorDetails, "fields" | "fieldsTotal"> {
  if (fields === undefined) return {};
  return { fields: fields.slice(0, ERRORS_SHOWN_MAX), fieldsTotal: fieldsTotal ?? fields.length };
}
