/**
 * Watches logs that processes write directly (C code, children of user code), and rotates those that grow too large.
 * The kernel reports when a silent file is written to. While the file grows, it is checked every LOG_POLL_MS.
 */
import { closeSync, type FSWatcher, fstatSync, ftruncateSync, openSync, watch } from "node:fs";
import { contain, reportFault } from "../base/boundary.ts";
import {
  LOG_FILE_BYTES_MAX,
  LOG_FLOOD_BYTES,
  LOG_FLOOD_KEPT_BYTES,
  LOG_POLL_MS,
  RAW_LOG_BYTES_MAX,
} from "../contracts/limits/logs.ts";
import { rotateLog } from "./log-rotation.ts";

/** After this many checks without a change, the kernel's watch is used again. */
const QUIET_LOOKS = 3;
/** The interval of checks if the kernel has no watch left. */
const BLIND_POLL_MS = 1_000;

/** Watches `file`, which must exist, until the returned function is called. */
export function watchLog(file: string): () => void {
  try {
    const watched = new WatchedLog(file);
    return () => watched.close();
  } catch {
    // No descriptor is free. The worker still bounds what it prints itself.
    return () => {};
  }
}

class WatchedLog {
  private readonly file: string;
  /** Held open: the directory may be removed while a worker is still writing. */
  private readonly fd: number;
  private watcher: FSWatcher | undefined;
  private timer: NodeJS.Timeout | undefined;
  private sizeBefore = 0;
  private quietLooks = 0;

  constructor(file: string) {
    this.file = file;
    this.fd = openSync(file, "a+", 0o600);
    this.look();
  }

  close(): void {
    this.disarm();
    clearTimeout(this.timer);
    try {
      this.bound();
    } finally {
      closeSync(this.fd);
    }
  }

  private look(): void {
    const size = this.bound();
    this.quietLooks = size === this.sizeBefore ? this.quietLooks + 1 : 0;
    this.sizeBefore = size;
    if (this.quietLooks < QUIET_LOOKS) this.lookIn(LOG_POLL_MS);
    else this.arm();
  }

  /** If an error interrupts a check, the log is checked again later. */
  private inside(work: () => void): void {
    contain("the log of a worker", work, (error, unit) => {
      reportFault(error, unit);
      this.lookIn(BLIND_POLL_MS);
    });
  }

  private lookIn(ms: number): void {
    this.timer = setTimeout(() => this.inside(() => this.look()), ms).unref();
  }

  /** Keeps the log within its bounds, and returns its size. */
  private bound(): number {
    const { size, nlink } = fstatSync(this.fd);
    if (size < RAW_LOG_BYTES_MAX) return size;
    if (nlink === 0) ftruncateSync(this.fd, 0);
    else rotateLog(this.file, this.fd, size < LOG_FLOOD_BYTES ? LOG_FILE_BYTES_MAX : LOG_FLOOD_KEPT_BYTES);
    return fstatSync(this.fd).size;
  }

  private arm(): void {
    try {
      this.watcher = watch(this.file, { persistent: false }, () => this.inside(() => this.wake()));
      this.watcher.on("error", () => this.inside(() => this.wake()));
    } catch {
      return this.lookIn(BLIND_POLL_MS);
    }
    // It was written to between the last check and now, which the watch does not report.
    if (fstatSync(this.fd).size !== this.sizeBefore) this.wake();
  }

  private wake(): void {
    this.disarm();
    clearTimeout(this.timer);
    this.quietLooks = 0;
    this.look();
  }

  private disarm(): void {
    this.watcher?.close();
    this.watcher = undefined;
  }
}
