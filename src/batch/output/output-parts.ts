/**
 * Turns settled batches into parts, in order, one part at a time. A part is durable in the store before its row, and
 * its row before the files that it came from are removed (docs/decisions/0004-commit-order.md).
 */

import type { ReachKillPoint } from "../../base/kill-points.ts";
import type { Database } from "../../database/database.ts";
import { FormerOwner } from "../records/owned-job.ts";
import type { SpoolFiles } from "../rows/spool-files.ts";
import { InOrder } from "./in-order.ts";
import type { OutputCompression } from "./job-outputs.ts";
import { lastPart, type Part, parts, savePart } from "./part-rows.ts";
import { type PartRange, PartSizes } from "./part-sizes.ts";
import { type PartSources, writePart } from "./part-writer.ts";
import { rewritePart } from "./rewrite-part.ts";

const ENTRIES_A_PAGE = 4096;

export interface OutputPartsOptions extends PartSources {
  db: Database;
  jobId: string;
  epoch: number;
  round: number;
  reach: ReachKillPoint;
  /** The address below which the parts are. */
  prefix: string;
  compression: OutputCompression;
  /** Waits until a part with so many bytes of rows may be written. */
  admitPart: (bytes: number) => Promise<void>;
  files: SpoolFiles;
  totalBatches: number;
}

export class OutputParts {
  private readonly options: OutputPartsOptions;
  private readonly inOrder: InOrder;
  private readonly sizes: PartSizes;
  private nextNumber: number;

  private constructor(options: OutputPartsOptions, last: Part | undefined) {
    this.options = options;
    this.nextNumber = last === undefined ? 0 : last.number + 1;
    this.sizes = new PartSizes(last?.next_batch ?? 0);
    this.inOrder = new InOrder(options.totalBatches);
  }

  /** Continues after the last part that was committed. */
  static async open(options: OutputPartsOptions): Promise<OutputParts> {
    return new OutputParts(options, await lastPart(options.db, options.jobId));
  }

  /** The first batch that is in no part yet. */
  get first(): number {
    return this.sizes.added;
  }

  isSettled(batchIndex: number): boolean {
    return this.inOrder.has(batchIndex);
  }

  /** A batch is settled, and counted. */
  settled(batchIndex: number): void {
    this.inOrder.add(batchIndex);
  }

  /** Writes what is left. All batches are settled. */
  async finish(): Promise<void> {
    await this.write();
    if (this.options.round > 1) await this.rewriteChanged();
  }

  /** Writes every part that is full; once all batches are settled, also the last one. */
  async write(): Promise<void> {
    while (this.sizes.added < this.inOrder.next) {
      const range = await this.collect();
      if (range !== undefined) await this.writeOne(range);
    }
    if (!this.inOrder.isComplete) return;
    const last = this.sizes.last();
    if (last !== undefined) await this.writeOne(last);
  }

  /** Adds a page of the index. Returns the part that it fills, with which the next call continues. */
  private async collect(): Promise<PartRange | undefined> {
    const first = this.sizes.added;
    const places = await this.options.index.read(first, Math.min(ENTRIES_A_PAGE, this.inOrder.next - first));
    for (const { bytes } of places) {
      const range = this.sizes.add(bytes);
      if (range !== undefined) return range;
    }
    return undefined;
  }

  private async writeOne(range: PartRange): Promise<void> {
    const number = this.nextNumber;
    const name = this.nameOf(number);
    await this.options.admitPart(range.bytes);
    const content = await writePart(this.options, range, name);
    await this.save({ ...content, number, name, first_batch: range.first, next_batch: range.next });
    this.nextNumber++;
    await this.options.files.removeBefore(range.next);
  }

  /** Batches of the parts of earlier rounds may have succeeded in this one. */
  private async rewriteChanged(): Promise<void> {
    const { db, jobId } = this.options;
    const isSettled = (batchIndex: number) => this.isSettled(batchIndex);
    for (let number = 0; number < this.nextNumber; number++) {
      const [part] = await parts(db, jobId, number, 1);
      if (part === undefined || (await this.isWhole(part))) continue;
      await this.options.admitPart(part.unpacked_bytes ?? part.bytes);
      await this.save(await rewritePart({ ...this.options, isSettled }, part, this.nameOf(number)));
    }
  }

  /** Whether the part has all rows of its batches: a round only adds some. Entries of failed batches have none. */
  private async isWhole({ first_batch, next_batch, ...part }: Part): Promise<boolean> {
    const found = { batches: 0, rows: 0 };
    for (let from = first_batch; from < next_batch; from += ENTRIES_A_PAGE) {
      const places = await this.options.index.read(from, Math.min(ENTRIES_A_PAGE, next_batch - from));
      for (const { bytes, rows } of places) {
        if (bytes > 0) found.batches++;
        found.rows += rows;
      }
    }
    return found.batches === part.batches && found.rows === part.rows;
  }

  private async save(part: Part): Promise<void> {
    const { db, jobId, epoch, reach } = this.options;
    reach("part-before-commit");
    await db.transaction(async (tx) => {
      if (!(await savePart(tx, jobId, epoch, part))) throw new FormerOwner();
    });
    reach("part-after-commit");
  }

  private nameOf(number: number): string {
    const { round, epoch, compression } = this.options;
    return `part-${number}-${round}.${epoch}.jsonl${compression === "zstd" ? ".zst" : ""}`;
  }
}
