/**
 * The messages between a caller (gateway or controller) and a worker. Frequent ones are binary, the others JSON.
 * docs/worker-protocol.md says when each is allowed and what it promises. Fixtures: protocol/fixtures/.
 */
import { RESULT_HEAD_BYTES_MAX } from "../contracts/limits/frames.ts";

export const PROTOCOL_VERSION = 4;

/** Caller to worker: 1 to 63. Worker to caller: 64 to 127. */
export const MESSAGE = {
  HELLO: 1,
  INIT: 2,
  PREDICT: 3,
  LEASE: 4,
  CANCEL: 5,
  DRAIN: 6,
  JOB_COMPLETE: 7,
  WINDOW: 8,
  CREDIT: 9,
  META: 10,
  ENQUEUED: 11,
  OUTPUT_CREDIT: 12,
  LEASE_PART: 13,
  /** Before a PREDICT with the same id: its `X-Request-Id` in ASCII, for the log. */
  REQUEST_ID: 14,
  WELCOME: 64,
  READY: 65,
  INIT_FAILED: 66,
  RESULT: 67,
  ERROR: 68,
  BUSY: 69,
  START: 70,
  ACK: 71,
  RELEASE: 72,
  STREAM: 73,
  REFUSED: 74,
  CHUNK: 75,
  END: 76,
  OUTPUT: 77,
  RECYCLE: 78,
} as const;

export interface Hello {
  protocol: number;
  role: "controller" | "gateway";
  token: string;
  /**
   * The controller's epoch. A worker refuses a controller with a lower epoch than one that it has seen. 0 for a
   * gateway.
   */
  epoch: number;
}

/** Why a worker refuses the sender of a HELLO. */
export interface Refusal {
  reason: string;
  /** The wrong part: the version of the protocol, the token, the role, or an old epoch. */
  code: "protocol" | "token" | "role" | "epoch";
}

/** A worker's description of itself, in reply to HELLO. */
export interface Welcome {
  protocol: number;
  pid: number;
  state: "new" | "initializing" | "ready" | "draining" | "failed";
  api_id: string | null;
  /** The number of this connection in the note of the delivery in hand. */
  connection: number;
  wants: string[];
  is_async: boolean;
  /** The note of this worker's previous process, if that died with a delivery in hand. */
  died_in: { epoch: number; delivery: number; batch_index: number } | null;
}

export interface Init {
  api_id: string;
  project: string;
  path: string;
  python_path?: string;
  /**
   * JSON texts, which Python parses, so that numbers stay as they were written. `job_config` is also the `config` of
   * `job_spec`.
   */
  api_config: string;
  job_config?: string;
  job_spec?: Record<string, unknown>;
  /** How many predictions may wait and run in the worker before it replies BUSY. */
  concurrency: number;
  /** `threads_per_process`. */
  threads: number;
  /** `server_side_batching`. */
  batching?: { max_batch_size: number; interval_ms: number };
  monitoring?: { model_type: "classification" | "regression"; key?: string | undefined };
  /** `predictor.response`; absent means `json`. */
  response?: "text";
  /** `predictor.max_requests`: after so many requests the worker asks to be replaced (RECYCLE). A job's worker ignores it. */
  max_requests?: number;
  /** The job has an output: the worker sends what `predict()` returned as rows (OUTPUT), and ACKs have their sizes. */
  has_output?: boolean;
  /** `predictor.reuse_worker`: other jobs of the version may follow in the same process, each with an INIT. */
  may_be_reused?: boolean;
  /** The worker has worked for another job, and writes its output to this file from now on. */
  log_file?: string | undefined;
  /** With an output: `predict()` must return one value an item, because a batch that fails is run again in parts. */
  needs_value_per_item?: boolean;
}

export interface Ready {
  wants: string[];
  /** `predict` is `async def`: the worker runs all the calls that it accepts at once. */
  is_async: boolean;
  has_on_job_complete: boolean;
}

export interface WorkerFault {
  /** `load`, `signature`, `init`, `predict`, `serialize`, `values`, `payload`, `response` or `on_job_complete`. */
  stage: string;
  type: string;
  message: string;
  traceback: string;
  /** An exception that looks like an HTTPException sets this response (docs/contract/predictor.md#http-exceptions). */
  status_code?: number;
  detail?: unknown;
  /** For a worker that died: what is known about the death, as `reason.evidence` shows it. */
  evidence?: DeathEvidence;
}

/** Numbers in bytes where the name says so. */
export interface DeathEvidence {
  signal?: string;
  exit_code?: number;
  out_of_memory?: "limit" | "kernel";
  peak_memory_bytes?: number;
  memory_limit_bytes?: number;
  last_lines?: string[];
}

/**
 * META, sent before a PREDICT with the same id: a content type that is not JSON, and what the predictor declares
 * besides the payload.
 */
export interface PredictMeta {
  /** Absent for JSON. */
  content_type?: string;
  headers?: Record<string, unknown>;
  /** Headers that came several times; `headers` has their values joined. */
  repeated_headers?: Record<string, string[]>;
  query_params?: [name: string, value: string][];
}

/** The head of a RESULT or a STREAM. A RESULT without a head is status 200 and JSON. */
export interface AnswerHead {
  status?: number;
  headers?: [name: string, value: string][];
  /** `monitoring`: the prediction's classes or values, element by element ... */
  classes?: string[];
  values?: number[];
  /** ... or counted, if the prediction has many elements. */
  class_counts?: [name: string, count: number][];
  value_sum?: { count: number; sum: number; least: number; most: number };
}

export interface StreamHead extends AnswerHead {
  /** `json`: a JSON value in each CHUNK; `text`: UTF-8; `raw`: bytes of the body. */
  format: "json" | "text" | "raw";
}

export interface Result {
  predictUs: number;
  /** JSON of an AnswerHead. */
  head: Buffer | undefined;
  body: Buffer;
}

/**
 * RESULT: `u32 microseconds in predict | u32 n | n bytes of head | body`. Head and body are views. Throws if the
 * message is too short for its head, or the head too long.
 */
export function decodeResult(message: Buffer): Result {
  if (message.length < 8 || message.readUInt32LE(4) > message.length - 8)
    throw new RangeError("it ends inside of its head");
  const headBytes = message.readUInt32LE(4);
  if (headBytes > RESULT_HEAD_BYTES_MAX)
    throw new RangeError(`its head has ${headBytes} bytes, and ${RESULT_HEAD_BYTES_MAX} are allowed`);
  return {
    predictUs: message.readUInt32LE(0),
    head: headBytes === 0 ? undefined : message.subarray(8, 8 + headBytes),
    body: message.subarray(8 + headBytes),
  };
}

/** The bytes before each batch in a LEASE: `u32 batch index | u32 length`. The frame's id is the first delivery. */
export const LEASE_ENTRY_HEADER_BYTES = 8;

/** RELEASE: the deliveries from `id` to the body's `u32` were not started and are given back. */
export function decodeRelease(id: number, body: Buffer): { first: number; last: number } {
  return { first: id, last: body.readUInt32LE(0) };
}

/** RECYCLE: how many requests of `max_requests` are left. */
export function decodeRecycle(body: Buffer): number {
  return body.readUInt32LE(0);
}

export function encodeJson(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** WINDOW, CREDIT and OUTPUT_CREDIT: `u32 bytes`. */
export function encodeByteCount(bytes: number): Buffer {
  const body = Buffer.allocUnsafe(4);
  body.writeUInt32LE(bytes);
  return body;
}
