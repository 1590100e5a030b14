/**
 * Writes a part anew, with the rows of batches that failed in an earlier round and have succeeded since, all or some of
 * their items. They come to their place in the order of batches; all other rows stay as they were.
 */
import type { SettledRows } from "../rows/rows-place.ts";
import { chunksOf } from "./part-chunks.ts";
import type { Part } from "./part-rows.ts";
import { PartUpload } from "./part-upload.ts";
import { copyRows, type PartSources } from "./part-writer.ts";
import { countLines, RowScanner } from "./row-scanner.ts";

const ENTRIES_A_PAGE = 4096;
const READ_BYTES = 1024 * 1024;

export interface RewriteSources extends PartSources {
  /** Whether a batch is settled. The index may also have entries that were never committed. */
  isSettled: (batchIndex: number) => boolean;
}

/** `name`: of the new object. The old one stays until the manifest is replaced. */
export function rewritePart(sources: RewriteSources, part: Part, name: string): Promise<Part> {
  return PartUpload.write(sources, name, async (upload) => {
    const merge = new Merge(sources, part, upload);
    await merge.run();
    return { ...part, name, rows: part.rows + merge.rows, batches: part.batches + merge.batches };
  });
}

class Merge {
  /** What is added, less what that replaces. */
  rows = 0;
  batches = 0;
  private readonly sources: RewriteSources;
  private readonly part: Part;
  private readonly upload: PartUpload;
  private readonly buffer = Buffer.allocUnsafe(READ_BYTES);
  private readonly added: AsyncGenerator<SettledRows>;
  private next: SettledRows | undefined;
  /** The batch that was added last, and whether the old part has rows of it. */
  private last = { batchIndex: -1, isReplaced: false };

  constructor(sources: RewriteSources, part: Part, upload: PartUpload) {
    this.sources = sources;
    this.part = part;
    this.upload = upload;
    this.added = inSpool(sources, part);
  }

  async run(): Promise<void> {
    const { store, prefix } = this.sources;
    await this.advance();
    const scanner = new RowScanner();
    for await (const chunk of chunksOf(store, prefix, this.part))
      for (const { batchIndex, bytes } of scanner.scan(chunk)) {
        await this.addUpTo(batchIndex);
        if (batchIndex === this.last.batchIndex) this.leaveOut(bytes);
        else await this.upload.append(bytes);
      }
    scanner.end();
    await this.addUpTo(this.part.next_batch - 1);
  }

  private async addUpTo(batchIndex: number): Promise<void> {
    for (; this.next !== undefined && this.next.batchIndex <= batchIndex; await this.advance())
      await this.add(this.next);
  }

  /** Rows of the old part whose batch has all its rows in the spool. */
  private leaveOut(bytes: Buffer): void {
    if (!this.last.isReplaced) this.batches--;
    this.last.isReplaced = true;
    this.rows -= countLines(bytes);
  }

  private async advance(): Promise<void> {
    const { value, done } = await this.added.next();
    this.next = done ? undefined : value;
  }

  private async add({ batchIndex, place }: SettledRows): Promise<void> {
    this.last = { batchIndex, isReplaced: false };
    await copyRows(this.sources.spool, place, this.buffer, this.upload);
    this.rows += place.rows;
    this.batches++;
  }
}

/** The batches of the part whose rows are in the spool, in order. */
async function* inSpool({ spool, index, isSettled }: RewriteSources, { first_batch, next_batch }: Part) {
  const files = new Set(await spool.files());
  for (let from = first_batch; from < next_batch; from += ENTRIES_A_PAGE) {
    const places = await index.read(from, Math.min(ENTRIES_A_PAGE, next_batch - from));
    for (const [i, place] of places.entries()) {
      const batchIndex = from + i;
      if (place.bytes > 0 && files.has(place.file) && isSettled(batchIndex)) yield { batchIndex, place };
    }
  }
}
