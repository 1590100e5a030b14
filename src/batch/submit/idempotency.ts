/**
 * `Idempotency-Key` (docs/contract/submitting.md#idempotency-key): the same key and body within a day return the first
 * response again; another body is a conflict. The key is recorded in the job's own commit. So only one of two
 * simultaneous submissions creates a job.
 */
import { createHash } from "node:crypto";
import { OneEachTurn } from "../../base/loop/turns.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { HASHED_EACH_TURN_BYTES } from "../../contracts/limits/event-loop.ts";
import {
  EXPIRED_KEYS_AT_ONCE,
  IDEMPOTENCY_KEPT_MS,
  IDEMPOTENCY_KEY_LENGTH_MAX,
} from "../../contracts/limits/submissions.ts";
import { first, type Statements } from "../../database/database.ts";

export interface SubmissionKey {
  api_name: string;
  idempotency_key: string;
  body_sha256: string;
}

/** Throws if the header's value is not a legal key. */
export async function submissionKey(apiName: string, header: string, body: Buffer): Promise<SubmissionKey> {
  assertLegalKey(header);
  return { api_name: apiName, idempotency_key: header, body_sha256: await sha256(body) };
}

const turns = new OneEachTurn();

/** Long bodies are hashed in pieces, one of them in each turn of the event loop. */
async function sha256(body: Buffer): Promise<string> {
  const hash = createHash("sha256");
  if (body.length <= HASHED_EACH_TURN_BYTES) return hash.update(body).digest("hex");
  for (let at = 0; at < body.length; at += HASHED_EACH_TURN_BYTES) {
    await turns.turn();
    hash.update(body.subarray(at, at + HASHED_EACH_TURN_BYTES));
  }
  return hash.digest("hex");
}

export function assertLegalKey(header: string): void {
  if (!/^[\x21-\x7e]+$/.test(header) || header.length > IDEMPOTENCY_KEY_LENGTH_MAX) {
    throw new ServiceError(
      "invalid_request",
      `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable characters without spaces (got ${JSON.stringify(header.slice(0, 40))}); use a UUID`,
    );
  }
}

/** The job that this key created before; undefined if the key is new. Throws `idempotency_key_reused`. */
export async function findSubmission(
  db: Statements,
  key: SubmissionKey,
  nowMs: number,
): Promise<string | undefined> {
  const row = await first<{ job_id: string; body_sha256: string }>(
    db,
    "SELECT job_id, body_sha256 FROM idempotency_keys WHERE api_name = ? AND idempotency_key = ? AND created_ms > ?",
    [key.api_name, key.idempotency_key, nowMs - IDEMPOTENCY_KEPT_MS],
  );
  if (row === undefined || row.body_sha256 === key.body_sha256) return row?.job_id;
  throw new ServiceError(
    "idempotency_key_reused",
    `Idempotency-Key "${key.idempotency_key}" was used for job ${row.job_id} with another body; use a new key for a new job`,
  );
}

/**
 * Records the key, and deletes some expired ones: more than it adds, so that they become fewer. A day may have left any
 * number of them. The key itself may have expired and still be there.
 */
export async function saveSubmission(
  tx: Statements,
  key: SubmissionKey,
  jobId: string,
  nowMs: number,
): Promise<void> {
  await tx.run(
    `DELETE FROM idempotency_keys WHERE (api_name, idempotency_key) IN
       (SELECT api_name, idempotency_key FROM idempotency_keys WHERE created_ms <= ? ORDER BY created_ms LIMIT ?)`,
    [nowMs - IDEMPOTENCY_KEPT_MS, EXPIRED_KEYS_AT_ONCE],
  );
  await tx.run(
    `INSERT INTO idempotency_keys (api_name, idempotency_key, body_sha256, job_id, created_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (api_name, idempotency_key) DO UPDATE SET body_sha256 = excluded.body_sha256,
       job_id = excluded.job_id, created_ms = excluded.created_ms`,
    [key.api_name, key.idempotency_key, key.body_sha256, jobId, nowMs],
  );
}
