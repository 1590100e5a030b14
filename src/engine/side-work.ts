/**
 * Work of a size that callers choose, in a thread beside the event loop: reading what is long would keep everybody else waiting.
 * One piece at a time, each with a time limit; the thread starts with the first piece and ends when there has been none for a
 * while. What it throws, and its death, are the caller's, not the process's.
 */
import { parentPort, type Transferable, Worker } from "node:worker_threads";
import { inBackground } from "../base/background.ts";
import { type ErrorCode, type ErrorDetails, ServiceError } from "../contracts/errors.ts";
import { ERRORS_SHOWN_MAX } from "../contracts/limits.ts";

/** A start takes some 100 ms; the memory of one that has nothing to do is given back. */
const IDLE_MS = 10_000;

export interface SideThreadOptions {
  /** Its program, which calls `serveThread`. */
  program: URL;
  /** For one piece of work. */
  limitMs: number;
  heapMiB: number;
  /** What the caller is told of work that takes more time or memory. */
  tooMuch: () => ServiceError;
}

interface Piece<Task, Result> {
  task: Task;
  transfer: Transferable[];
  resolve: (result: Result) => void;
  reject: (error: Error) => void;
}

type Reply<Result> =
  | { result: Result }
  | { refused: { code: ErrorCode; message: string; details: Pick<ErrorDetails, "fields" | "fieldsTotal"> } }
  | { fault: string };

export class SideThread<Task, Result> {
  private readonly options: SideThreadOptions;
  private readonly waiting: Piece<Task, Result>[] = [];
  private current: Piece<Task, Result> | undefined;
  private worker: Worker | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(options: SideThreadOptions) {
    this.options = options;
  }

  /** `transfer`: buffers that are handed over, and are empty here from then on. Throws what the program throws. */
  run(task: Task, transfer: Transferable[] = []): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ task, transfer, resolve, reject });
      this.next();
    });
  }

  private next(): void {
    if (this.current !== undefined) return;
    clearTimeout(this.timer);
    this.current = this.waiting.shift();
    if (this.current === undefined) {
      this.timer = setTimeout(() => this.end(), IDLE_MS).unref();
      return;
    }
    this.worker ??= this.start();
    this.timer = setTimeout(() => this.giveUp(), this.options.limitMs);
    this.worker.postMessage(this.current.task, this.current.transfer);
  }

  private start(): Worker {
    const worker = new Worker(this.options.program, {
      resourceLimits: { maxOldGenerationSizeMb: this.options.heapMiB },
      // Nothing of ours is read there.
      env: {},
    });
    worker.on("message", (reply: Reply<Result>) => this.settle(reply));
    worker.on("error", (error: NodeJS.ErrnoException) => {
      this.worker = undefined;
      this.fail(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? this.options.tooMuch() : error);
    });
    worker.unref();
    return worker;
  }

  private settle(reply: Reply<Result>): void {
    const { current } = this;
    this.current = undefined;
    if ("result" in reply) current?.resolve(reply.result);
    else if ("fault" in reply) current?.reject(new Error(reply.fault));
    else {
      const { code, message, details } = reply.refused;
      current?.reject(new ServiceError(code, message, details));
    }
    this.next();
  }

  private giveUp(): void {
    this.end();
    this.fail(this.options.tooMuch());
  }

  private fail(error: Error): void {
    const { current } = this;
    this.current = undefined;
    current?.reject(error);
    this.next();
  }

  private end(): void {
    const { worker } = this;
    this.worker = undefined;
    worker?.removeAllListeners();
    // What it says while it ends concerns nobody.
    worker?.on("error", () => {});
    if (worker !== undefined) inBackground(worker.terminate());
  }
}

/** The thread's side: answers each task. `transferOf`: what of a result is handed over instead of copied. */
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

/** A caller may have made a hundred thousand errors: to take them over would cost what the thread has saved. */
function shown({ fields, fieldsTotal }: ErrorDetails): Pick<ErrorDetails, "fields" | "fieldsTotal"> {
  if (fields === undefined) return {};
  return { fields: fields.slice(0, ERRORS_SHOWN_MAX), fieldsTotal: fieldsTotal ?? fields.length };
}
