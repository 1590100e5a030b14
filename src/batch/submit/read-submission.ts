/** Reads submissions: short ones here, long ones on a thread, so that a long one does not delay other requests. */
import { ServiceError } from "../../contracts/errors.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import {
  READ_ASIDE_HEAP_MIB,
  READ_ASIDE_LIMIT_MS,
  READ_HERE_BYTES_MAX,
  READ_SHORT_BYTES_MAX,
} from "../../contracts/limits/event-loop.ts";
import { SideThread } from "../../engine/side-work.ts";
import { type ParsedSubmission, parseSubmission } from "./parse-submission.ts";

const threadOptions = {
  program: new URL("./submission-thread.js", import.meta.url),
  limitMs: READ_ASIDE_LIMIT_MS,
  heapMiB: READ_ASIDE_HEAP_MIB,
  tooMuch: () =>
    new ServiceError(
      "invalid_request",
      `the submission takes more than ${READ_ASIDE_LIMIT_MS / 1000} s or ${READ_ASIDE_HEAP_MIB} MiB to read: it has too many values; put them into a file and submit it as delimited_files`,
    ),
};
/** A piece is not interrupted, so the shorter ones have a thread where none takes long. */
const forShort = new SideThread<Uint8Array, ParsedSubmission>(threadOptions);
const forLong = new SideThread<Uint8Array, ParsedSubmission>(threadOptions);

/** A submission as it was sent. */
export interface SentSubmission {
  body: Buffer;
  /** Its `Idempotency-Key`. */
  idempotencyKey?: string | undefined;
  /** A key, or a client's address. Senders of long submissions take turns. */
  sender: string;
  /** Is kept with the job. */
  by?: DoneBy | undefined;
  /** The highest priority that the sender may give; undefined is any. */
  priorityMax?: number | undefined;
  /** Aborted when the client is gone. */
  left?: AbortSignal | undefined;
}

/** The body must not be used afterwards. Throws ServiceError with all errors. */
export async function readSubmission({ body, sender, left }: SentSubmission): Promise<ParsedSubmission> {
  if (body.length <= READ_HERE_BYTES_MAX) return parseSubmission(body);
  const isWhole = body.length === body.buffer.byteLength;
  const transfer = isWhole ? [body.buffer as ArrayBuffer] : [];
  const aside = body.length <= READ_SHORT_BYTES_MAX ? forShort : forLong;
  const parsed = await aside.run(body, { bytes: body.length, sender, transfer, left });
  const { input } = parsed;
  if (input.kind !== "items") return parsed;
  // A Buffer arrives from the thread as a plain array of bytes.
  const { buffer, byteOffset, byteLength } = input.lines;
  return { ...parsed, input: { ...input, lines: Buffer.from(buffer, byteOffset, byteLength) } };
}
