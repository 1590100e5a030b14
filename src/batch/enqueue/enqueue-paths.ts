/** `file_path_lister`: the selected paths become the items. They are copied into the job's own file. */
import { BATCH_BYTES_LIMIT } from "../../contracts/limits/submissions.ts";
import type { SelectedFile, SelectedPage } from "../../object-store/select/select-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { ITEMS_ETAG, ITEMS_PATH, type ItemsWriter } from "../records/items-file.ts";
import { type EnqueueCommits, endCursor } from "./enqueue-commits.ts";
import type { EnqueuePause, Position } from "./enqueue-position.ts";
import type { SegmentMaker } from "./make-segments.ts";

export interface EnqueuePathsOptions {
  /** Files after those that are enqueued already. */
  pages: AsyncIterable<SelectedPage>;
  maker: SegmentMaker;
  commits: EnqueueCommits;
  own: ItemsWriter;
  pause: EnqueuePause;
}

/** Resolves to where it stopped; undefined if all is enqueued. */
export async function enqueuePaths(options: EnqueuePathsOptions): Promise<Position | undefined> {
  const { maker, commits, own, pause } = options;
  maker.beginFile(ITEMS_PATH, ITEMS_ETAG, own.bytes);
  for await (const { files, reached } of options.pages) {
    enqueuePage(files, options);
    await commits.commitWhereFull();
    if (!pause.isDue({ reached })) continue;
    maker.endFile();
    return { reached };
  }
  maker.endFile();
  const rest = maker.finish();
  if (rest !== undefined) commits.keep(rest, endCursor(own));
  await commits.commit();
  return undefined;
}

function enqueuePage(page: readonly SelectedFile[], { maker, commits, own }: EnqueuePathsOptions): void {
  const lines: string[] = [];
  let end = own.bytes;
  for (const { path, entry } of page) {
    const line = JSON.stringify(path);
    const bytes = Buffer.byteLength(line);
    lines.push(line, "\n");
    end += bytes + 1;
    const segment = maker.item(end, bytes);
    if (maker.batch.compactBytes >= BATCH_BYTES_LIMIT) throw tooLarge(path, maker.batch.compactBytes);
    if (segment !== undefined)
      commits.keep(segment, { entry, path, etag: "", offset: 0, line: 0, own_bytes: end });
  }
  own.append(Buffer.from(lines.join("")));
}

function tooLarge(path: string, batchBytes: number): EnqueueError {
  const message = `with ${path} its batch has ${batchBytes} bytes; a batch must be smaller than ${BATCH_BYTES_LIMIT}`;
  return new EnqueueError("batch_too_large", message, "use a smaller batch_size");
}
