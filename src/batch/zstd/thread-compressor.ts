/**
 * Compresses one stream on a thread, for versions of Node without a compressor. The thread's memory, which has the
 * WebAssembly program and its state, is free once it has ended.
 */
import { Worker } from "node:worker_threads";
import { inBackground } from "../../base/boundary.ts";
import type { ZstdCompressor } from "./compressor.ts";

interface Waiting {
  resolve: (packed: Uint8Array) => void;
  reject: (error: Error) => void;
}

export class ThreadCompressor implements ZstdCompressor {
  private readonly worker = new Worker(new URL("./zstd-thread.js", import.meta.url), { env: {} });
  private waiting: Waiting | undefined;
  private failure: Error | undefined;

  constructor() {
    this.worker.on("message", (packed: Uint8Array) => this.settle(({ resolve }) => resolve(packed)));
    this.worker.on("error", (error: Error) => this.fail(error));
    this.worker.on("exit", () => this.fail(new Error("the thread that compresses has ended")));
    this.worker.unref();
  }

  compress(bytes: Uint8Array): Promise<Uint8Array> {
    return this.ask(bytes);
  }

  end(): Promise<Uint8Array> {
    return this.ask(null);
  }

  close(): void {
    inBackground(this.worker.terminate());
  }

  private ask(bytes: Uint8Array | null): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) return reject(this.failure);
      this.waiting = { resolve, reject };
      this.worker.postMessage(bytes, bytes === null ? [] : [bytes.buffer as ArrayBuffer]);
    });
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.settle(({ reject }) => reject(error));
  }

  private settle(how: (waiting: Waiting) => void): void {
    const { waiting } = this;
    this.waiting = undefined;
    if (waiting !== undefined) how(waiting);
  }
}
