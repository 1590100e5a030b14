/**
 * The access log (docs/contract/operations.md#access-log): a line of JSON for each request to a real-time API. Lines
 * are written together, a few times a second. Several gateways append to the same file.
 */
import { closeSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { contain } from "../base/boundary.ts";
import { timestamp, wallMs } from "../base/clock.ts";
import { printable } from "../base/printable.ts";
import {
  ACCESS_FILE_BYTES_MAX,
  ACCESS_FILES_MAX,
  ACCESS_FLUSH_MS,
  ACCESS_WAITING_BYTES_MAX,
  LOGGED_PATH_LENGTH_MAX,
} from "../contracts/limits/logs.ts";
import { cutText } from "./cut-text.ts";
import { rotate } from "./numbered-files.ts";

/** A lock that is older belongs to a gateway that was killed. */
const LOCK_STALE_MS = 10_000;

/** The status of a request whose client left before the end of the response, as nginx writes it. */
export const CLIENT_LEFT = 499;

/** A request that is over. */
export interface Access {
  request: { method?: string | undefined };
  requestId: string;
  /** The API and its deployed version. */
  route: { name: string; api_id: string };
  /** 0 if the client left before the end of the response. */
  status: number;
  /** From its head to the end of the response. */
  tookMs: number;
  /** Of the body that has arrived, and of the response with its head. */
  bytes: { request: number; response: number };
  /** The id of the key, or the token's subject; undefined if none was needed, or it was refused. */
  key: string | undefined;
}

export interface AccessLogOptions {
  fileBytesMax?: number;
  /** Bytes of lines that may wait for the disk. */
  waitingBytesMax?: number;
}

export class AccessLog {
  private readonly file: string;
  private readonly fileBytesMax: number;
  private readonly waitingBytesMax: number;
  private waiting = "";
  /** Lines that found no place while the disk was full or slow. */
  private dropped = 0;
  private timer: NodeJS.Timeout | undefined;
  /** The last write: each begins after the one before it, so that no two find the file too large at once. */
  private writing = Promise.resolve();
  /** The last write failed, and may have left the beginning of a line. */
  private isCut = false;

  constructor(file: string, options: AccessLogOptions = {}) {
    this.file = file;
    this.fileBytesMax = options.fileBytesMax ?? ACCESS_FILE_BYTES_MAX;
    this.waitingBytesMax = options.waitingBytesMax ?? ACCESS_WAITING_BYTES_MAX;
  }

  record(access: Access): void {
    if (this.waiting.length > this.waitingBytesMax) this.dropped++;
    else this.waiting += lineOf(access);
    this.timer ??= setTimeout(() => contain("the access log", () => this.flush()), ACCESS_FLUSH_MS);
  }

  /** Writes what waits. Resolves once it is written, or the disk is full. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.write());
    return this.writing;
  }

  private async write(): Promise<void> {
    const dropped = this.dropped;
    const lines = this.waiting;
    const told = dropped === 0 ? "" : `${JSON.stringify({ time: timestamp(), dropped })}\n`;
    if (lines === "" && told === "") return;
    this.waiting = "";
    this.dropped = 0;
    try {
      if (sizeOf(this.file) >= this.fileBytesMax) this.rotate();
      await appendFile(this.file, `${this.isCut ? "\n" : ""}${told}${lines}`, { mode: 0o600 });
      this.isCut = false;
    } catch {
      // Nothing fails because of the log. Part of the lines may be in the file, so they are not written again.
      this.isCut = true;
      this.dropped += dropped + lines.split("\n").length - 1;
    }
  }

  /** One gateway rotates at a time, and finds out first whether another one has done so. */
  private rotate(): void {
    const lock = `${this.file}.rotating`;
    if (ageMsOf(lock) > LOCK_STALE_MS) rmSync(lock, { force: true });
    let fd: number;
    try {
      fd = openSync(lock, "wx", 0o600);
    } catch {
      return;
    }
    try {
      writeSync(fd, String(process.pid));
      if (sizeOf(this.file) >= this.fileBytesMax) rotate(this.file, ACCESS_FILES_MAX);
    } finally {
      closeSync(fd);
      rmSync(lock, { force: true });
    }
  }
}

function lineOf({ request, requestId, route, status, tookMs, bytes, key = "" }: Access): string {
  const line = {
    time: timestamp(),
    request_id: requestId,
    api: route.name,
    api_id: route.api_id,
    method: request.method,
    status: status === 0 ? CLIENT_LEFT : status,
    duration_ms: Math.round(tookMs * 1_000) / 1_000,
    request_bytes: bytes.request,
    response_bytes: bytes.response,
    key: key === "" ? null : cutText(key, LOGGED_PATH_LENGTH_MAX),
  };
  return `${printable(JSON.stringify(line))}\n`;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function ageMsOf(file: string): number {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? 0 : Math.max(0, wallMs() - stat.mtimeMs);
}
