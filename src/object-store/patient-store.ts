/**
 * A store that waits while another store does not respond. Listings continue after what was listed; reads are repeated
 * from where they broke off, and uploads from the piece that did not arrive. Errors that a retry cannot fix are thrown at
 * once.
 */
import { describeShortage, shortageOf } from "../base/disk-full.ts";
import { ServiceError } from "../contracts/errors.ts";
import { STORE_PATIENCE_MS, STORE_PAUSE_MAX_MS } from "../contracts/limits/stores.ts";
import type {
  ListedObject,
  ListOptions,
  ObjectStore,
  OpenObject,
  Upload,
  WriteCondition,
  Written,
} from "./object-store.ts";

const PAUSE_FIRST_MS = 250;

export interface Patience {
  /** Called before each pause, with the store's error. */
  onWait: (error: Error, pauseMs: number) => void;
  /** Called when an operation that had to wait has succeeded. */
  onResume?: () => void;
  /** Aborted when nobody waits any more: the last error is thrown then. */
  signal: AbortSignal;
  patienceMs?: number;
}

export class PatientStore implements ObjectStore {
  private readonly store: ObjectStore;
  private readonly patience: Patience;

  constructor(store: ObjectStore, patience: Patience) {
    this.store = store;
    this.patience = patience;
  }

  parallelListings(prefix: string): number {
    return this.store.parallelListings(prefix);
  }

  async *list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]> {
    let { after } = options;
    const tries = new Tries(this.patience);
    for (;;) {
      try {
        for await (const page of this.store.list(prefix, { ...options, after })) {
          yield page;
          after = page.at(-1)?.path ?? after;
          tries.forget();
        }
        return;
      } catch (error) {
        await tries.pause(error);
      }
    }
  }

  async open(path: string, etag?: string): Promise<OpenObject> {
    const object = await this.again(() => this.store.open(path, etag));
    return {
      path,
      bytes: object.bytes,
      etag: object.etag,
      read: (into, offset, position, length) => this.again(() => object.read(into, offset, position, length)),
      close: () => object.close(),
    };
  }

  /**
   * If a response was lost, the object was written, and the retry throws ConditionFailed: read the object and compare.
   */
  put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    return this.again(() => this.store.put(path, body, condition));
  }

  async create(path: string): Promise<Upload> {
    const upload = await this.again(() => this.store.create(path));
    return {
      write: (chunk) => this.again(() => upload.write(chunk)),
      complete: () => this.again(() => upload.complete()),
      abort: () => this.again(() => upload.abort()),
    };
  }

  remove(path: string): Promise<void> {
    return this.again(() => this.store.remove(path));
  }

  removeUnfinished(prefix: string, signal?: AbortSignal): Promise<void> {
    return this.again(() => this.store.removeUnfinished(prefix, signal));
  }

  private async again<T>(work: () => Promise<T>): Promise<T> {
    const tries = new Tries(this.patience);
    for (;;) {
      try {
        const result = await work();
        tries.forget();
        return result;
      } catch (error) {
        await tries.pause(error);
      }
    }
  }
}

/** The tries of one operation, with growing pauses. */
class Tries {
  private readonly patience: Patience;
  private sinceMs: number | undefined;
  private pauseMs = PAUSE_FIRST_MS;

  constructor(patience: Patience) {
    this.patience = patience;
  }

  /** Call after a success: the next error is a new outage. */
  forget(): void {
    if (this.sinceMs === undefined) return;
    this.patience.onResume?.();
    this.sinceMs = undefined;
    this.pauseMs = PAUSE_FIRST_MS;
  }

  /** Resolves when it is time to retry; throws `error` if a retry is useless. */
  async pause(error: unknown): Promise<void> {
    const { onWait, signal, patienceMs = STORE_PATIENCE_MS } = this.patience;
    const isShortage = shortageOf(error) !== undefined;
    if (!isShortage && !(error instanceof ServiceError && error.code === "store_unreachable")) throw error;
    const now = performance.now();
    this.sinceMs ??= now;
    // A shortage on this machine is waited for without limit.
    if (signal.aborted || (!isShortage && now - this.sinceMs > patienceMs)) throw error;
    onWait(isShortage ? new Error(describeShortage(error)) : (error as ServiceError), this.pauseMs);
    await elapsed(this.pauseMs, signal);
    if (signal.aborted) throw error;
    this.pauseMs = Math.min(2 * this.pauseMs, STORE_PAUSE_MAX_MS);
  }
}

/** Resolves after `ms`, or when the signal is aborted. */
function elapsed(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
