/** Copies an SQLite database as it is at one moment, in a thread, while others write to it. */
import { Worker } from "node:worker_threads";

/** What the thread posts, in this order. */
type Stage = "ready" | "pinned" | "copied";

export class PinnedDatabase {
  private readonly thread: Worker;
  private readonly stages: Record<Stage, Promise<void>>;

  private constructor(file: string, target: string) {
    this.thread = new Worker(new URL("./copy-database-thread.js", import.meta.url), {
      workerData: { file, target },
      env: {},
    });
    this.thread.unref();
    const reached = (stage: Stage) => {
      const promise = new Promise<void>((resolve, reject) => {
        this.thread.on("message", (posted: Stage) => posted === stage && resolve());
        this.thread.once("error", reject);
        this.thread.once("exit", () => reject(new Error(`the copy of ${file} ended early`)));
      });
      promise.catch(() => {});
      return promise;
    };
    this.stages = { ready: reached("ready"), pinned: reached("pinned"), copied: reached("copied") };
  }

  static async open(file: string, target: string): Promise<PinnedDatabase> {
    const pinned = new PinnedDatabase(file, target);
    await pinned.stages.ready;
    return pinned;
  }

  /** The copy will have what is committed now, and nothing that is committed after this has resolved. */
  async pin(): Promise<void> {
    this.thread.postMessage("pin");
    await this.stages.pinned;
  }

  /** After `pin`: resolves when the copy is complete. */
  copied(): Promise<void> {
    return this.stages.copied;
  }

  /** May be called at any time. */
  async close(): Promise<void> {
    await this.thread.terminate();
  }
}
