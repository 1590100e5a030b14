/** ACK: a worker has finished deliveries. What succeeded is counted; each failure has its fault. */
import type { WorkerFault } from "./messages.ts";
import { readFault } from "./read-fault.ts";

/** One failed delivery, inside an ACK. */
interface FailedDelivery {
  delivery: number;
  fault: WorkerFault;
}

export interface Ack {
  /** All deliveries up to this one are settled, except those released. */
  upTo: number;
  succeeded: number;
  successUs: number;
  failures: FailedDelivery[];
  /** For a job with output, the rows of each success, in the order of deliveries. */
  rows: RowsSize[];
}

/** The rows of one batch in the output of its worker. */
export interface RowsSize {
  rows: number;
  bytes: number;
}

/** 115 days: more than an ACK can be about. Sums of such times stay integers that a database can hold. */
const SUCCESS_US_MAX = 1e13;
const ACK_HEAD_BYTES = 16;
const ROWS_SIZE_BYTES = 8;
const NO_ROWS: RowsSize[] = [];

/**
 * ACK: `u32 succeeded | u32 failed | u64 µs of the successes | (u32 rows | u32 bytes)* | (u32 delivery | u32 length |
 * JSON)*`; the id is `upTo`. The rows of each success are there only if the job has an output. Throws if the bytes have
 * another form. A fault that cannot be read becomes an `UnreadableFault`.
 */
export function decodeAck(id: number, body: Buffer, hasOutput = false): Ack {
  const failures: FailedDelivery[] = [];
  const succeeded = body.readUInt32LE(0);
  const failed = body.readUInt32LE(4);
  const rows = hasOutput ? decodeRows(body, succeeded) : NO_ROWS;
  let at = ACK_HEAD_BYTES + rows.length * ROWS_SIZE_BYTES;
  for (let i = 0; i < failed; i++) {
    const length = body.readUInt32LE(at + 4);
    const end = at + 8 + length;
    if (end > body.length) throw new RangeError("an ACK ends inside of a fault");
    failures.push({ delivery: body.readUInt32LE(at), fault: readFault(body.subarray(at + 8, end)) });
    at = end;
  }
  if (at !== body.length) throw new RangeError(`an ACK of ${body.length} bytes has content only up to ${at}`);
  const successUs = Math.min(Number(body.readBigUInt64LE(8)), SUCCESS_US_MAX);
  return { upTo: id, succeeded, successUs, failures, rows };
}

function decodeRows(body: Buffer, succeeded: number): RowsSize[] {
  if (ACK_HEAD_BYTES + succeeded * ROWS_SIZE_BYTES > body.length)
    throw new RangeError(`an ACK of ${body.length} bytes cannot have the rows of ${succeeded} batches`);
  const sizes: RowsSize[] = [];
  for (let at = ACK_HEAD_BYTES; sizes.length < succeeded; at += ROWS_SIZE_BYTES)
    sizes.push({ rows: body.readUInt32LE(at), bytes: body.readUInt32LE(at + 4) });
  return sizes;
}
