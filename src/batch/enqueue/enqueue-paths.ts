/** `file_path_lister`: the selected paths become the items. They are copied into the job's own file. */
import { BATCH_BYTES_LIMIT } from "../../contracts/limits/submissions.ts";
import type { SelectedFile } from "../../object-store/select/select-files.ts";
import { EnqueueError } from "../records/enqueue-error.ts";
import { ITEMS_ETAG, ITEMS_PATH, type ItemsFileWriter } from "../records/items-file.ts";
import { type EnqueueCommits, type EnqueueCursor, endCursor } from "./enqueue-commits.ts";
import type { SegmentMaker } from "./make-segments.ts";

export interface EnqueuePathsOptions {
  /** Pages of files; the first one may begin with the file of `cursor`, which is enqueued already. */
  files: AsyncIterable<SelectedFile[]>;
  maker: SegmentMaker;
  commits: EnqueueCommits;
  own: ItemsFileWriter;
  cursor: EnqueueCursor | undefined;
  isCancelled: () => boolean;
}

/** False if it was cancelled. */
export async function enqueuePaths(options: EnqueuePathsOptions): Promise<boolean> {
  const { maker, commits, own, cursor } = options;
  maker.beginFile(ITEMS_PATH, ITEMS_ETAG, own.bytes);
  for await (const page of options.files) {
    if (options.isCancelled()) return false;
    enqueuePage(
      page.filter((file) => file.path !== cursor?.path || file.entry !== cursor.entry),
      options,
    );
    await commits.commitWhereFull();
  }
  maker.endFile();
  const rest = maker.finish();
  if (rest !== undefined) commits.keep(rest, endCursor(own));
  await commits.commit();
  return true;
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
    if (maker.batchBytes >= BATCH_BYTES_LIMIT) throw tooLarge(path, maker.batchBytes);
    if (segment !== undefined)
      commits.keep(segment, { entry, path, etag: "", offset: 0, line: 0, own_bytes: end });
  }
  own.append(Buffer.from(lines.join("")));
}

function tooLarge(path: string, batchBytes: number): EnqueueError {
  const message = `with ${path} its batch has ${batchBytes} bytes; a batch must be smaller than ${BATCH_BYTES_LIMIT}`;
  return new EnqueueError("batch_too_large", message, "use a smaller batch_size");
}
