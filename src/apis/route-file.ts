/**
 * The file of the route snapshot, from which a gateway starts if there is no controller. If the disk is full, it is
 * written once there is space.
 */
import { closeSync, openSync, renameSync, writeFileSync } from "node:fs";
import { contain } from "../base/boundary.ts";
import { shortageOf } from "../base/disk-full.ts";

const WRITE_AGAIN_MS = 1_000;
/** Between two writes that can wait, at least nine times as long passes as one takes: most of the time is for others. */
const PAUSE = 9;
const PAUSE_MS_MAX = 500;

export interface RouteFileContent {
  version: number;
  pieces: readonly Buffer[];
}

export class RouteFile {
  private readonly path: string;
  private readonly content: () => RouteFileContent;
  private timer: NodeJS.Timeout | undefined;
  private tookMs = 0;
  /** The newest version in the file. */
  writtenVersion = 0;

  constructor(path: string, content: () => RouteFileContent) {
    this.path = path;
    this.content = content;
  }

  write(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const startMs = performance.now();
    try {
      const { version, pieces } = this.content();
      writePieces(`${this.path}.new`, pieces);
      renameSync(`${this.path}.new`, this.path);
      this.writtenVersion = version;
    } catch (error) {
      if (shortageOf(error) === undefined) throw error;
      this.writeIn(WRITE_AGAIN_MS);
    }
    this.tookMs = performance.now() - startMs;
  }

  /** Writes soon: one write for all changes until then. */
  writeSoon(): void {
    this.writeIn(Math.min(this.tookMs * PAUSE, PAUSE_MS_MAX));
  }

  /** Writes what waits to be written. */
  flush(): void {
    if (this.timer !== undefined) this.write();
  }

  private writeIn(ms: number): void {
    this.timer ??= setTimeout(() => contain("the file of the routes", () => this.write()), ms).unref();
  }
}

function writePieces(path: string, pieces: readonly Buffer[]): void {
  const file = openSync(path, "w", 0o600);
  try {
    for (const piece of pieces) writeFileSync(file, piece);
  } finally {
    closeSync(file);
  }
}
