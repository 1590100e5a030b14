/**
 * Writes lines to a descriptor whose reader may stall, such as a pager or a collector of logs. Lines wait in memory, up
 * to a limit. Those above it are lost, and counted: nothing waits for the reader of a log.
 */
import { writeSync } from "node:fs";

const HELD_BYTES_MAX = 1024 ** 2;
const TRY_AGAIN_MS = 100;
/** The pipe is full. */
const FULL_CODES = ["EAGAIN", "EBUSY"];

export interface PatientWriterOptions {
  /** Called with the number of lost lines, once the reader reads again. */
  onLost: (lines: number) => void;
  /** As `writeSync`; for tests. */
  write?: (bytes: Uint8Array) => number;
}

export class PatientWriter {
  private readonly onLost: (lines: number) => void;
  private readonly writeBytes: (bytes: Uint8Array) => number;
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  private lost = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(fd: number, { onLost, write = (bytes) => writeSync(fd, bytes) }: PatientWriterOptions) {
    this.onLost = onLost;
    this.writeBytes = write;
  }

  /** Never throws. The line is written when this returns, unless the reader is behind. */
  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.heldBytes + bytes.length > HELD_BYTES_MAX) this.lost++;
    else this.hold(bytes);
    this.flush();
  }

  private hold(bytes: Uint8Array): void {
    this.held.push(bytes);
    this.heldBytes += bytes.length;
  }

  private flush(): void {
    while (this.held.length > 0) {
      const written = this.tryToWrite(this.held[0]!);
      this.heldBytes -= written;
      if (written === this.held[0]!.length) this.held.shift();
      else {
        this.held[0] = this.held[0]!.subarray(written);
        if (written === 0) return this.flushLater();
      }
    }
    this.tellLost();
  }

  /** How many bytes were written. All of them count as written if there is no reader any more, or no space. */
  private tryToWrite(bytes: Uint8Array): number {
    try {
      return this.writeBytes(bytes);
    } catch (error) {
      return FULL_CODES.includes((error as NodeJS.ErrnoException).code ?? "") ? 0 : bytes.length;
    }
  }

  private flushLater(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, TRY_AGAIN_MS).unref();
  }

  private tellLost(): void {
    const { lost } = this;
    if (lost === 0) return;
    this.lost = 0;
    this.onLost(lost);
  }
}
