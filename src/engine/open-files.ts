/**
 * Lets a worker of a job start only if this process keeps enough descriptors for requests and its own files. A worker
 * takes some: pipes while it starts, then a connection, its log, and the file of its rows. Without a descriptor no
 * request is accepted and no file opened, so that every job and API would stop.
 */
import { FILES_FOR_REQUESTS, FILES_OF_A_START, FILES_OF_A_WORKER } from "../contracts/limits/processes.ts";

/** How long a count of the open files is used again if no worker was set up meanwhile. */
const COUNT_VALID_MS = 200;

/** The descriptors of one worker, until `end`. */
export interface WorkerFiles {
  /** It is connected: what it has open is counted from now on. */
  isSetUp(): void;
  end(): void;
}

export interface OpenFilesOptions {
  /** How many this process may open; infinite if the system does not say it. */
  max: number;
  /** How many it has open. */
  count: () => number;
}

export class OpenFiles {
  readonly max: number;
  /** How many are kept for everything but workers of jobs. */
  readonly kept: number;
  private readonly count: () => number;
  /** For workers that are not counted yet. */
  private promised = 0;
  private counted = 0;
  private countedMs = Number.NEGATIVE_INFINITY;

  constructor({ max, count }: OpenFilesOptions) {
    this.max = max;
    this.kept = Math.floor(Math.min(FILES_FOR_REQUESTS, (max * 3) / 8));
    this.count = count;
  }

  /**
   * Whether `workers` more may start. The first worker of a job may also use the last tenth, so that a job of many
   * workers does not keep the others from starting.
   */
  hasSpaceFor(workers: number, isFirst: boolean): boolean {
    if (this.max === Number.POSITIVE_INFINITY) return true;
    const aside = this.kept + (isFirst ? 0 : Math.floor(this.max / 10));
    return this.inUse + workers * FILES_OF_A_START <= this.max - aside;
  }

  /** Undefined if there is no space. */
  take(isFirst: boolean): WorkerFiles | undefined {
    if (!this.hasSpaceFor(1, isFirst)) return undefined;
    let own = FILES_OF_A_START;
    this.promised += own;
    const keep = (files: number) => {
      this.promised -= own - Math.min(own, files);
      own = Math.min(own, files);
      this.countedMs = Number.NEGATIVE_INFINITY;
    };
    return { isSetUp: () => keep(FILES_OF_A_WORKER), end: () => keep(0) };
  }

  /** For people, after "N workers wait". */
  describe(): string {
    return `for open files: the server may open ${this.max}, and keeps ${this.kept} for requests; raise the limit (ulimit -n, or LimitNOFILE of its service)`;
  }

  private get inUse(): number {
    const nowMs = performance.now();
    if (nowMs - this.countedMs > COUNT_VALID_MS) {
      this.counted = this.count();
      this.countedMs = nowMs;
    }
    return this.counted + this.promised;
  }
}
