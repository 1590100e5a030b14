/**
 * Writes objects of Google Cloud Storage: small ones in one request, others by resumable uploads. The store checks the
 * MD5 of each object. An upload that is neither completed nor aborted is invisible, and Google removes it after a week.
 */
import { createHash } from "node:crypto";
import { newUlid } from "../../base/ids.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { STORE_PIECE_BYTES } from "../../contracts/limits/stores.ts";
import { ConditionFailed, UploadLost, type WriteCondition, type Written } from "../object-store.ts";
import { type Piece, type PieceSink, PieceUpload } from "../piece-upload.ts";
import { bucketAndKey } from "../store-path.ts";
import { assertSmall, md5Of, millisToSend, updateHash } from "../write-limits.ts";
import type { GcsClient, GcsRequest } from "./gcs-client.ts";

const FIELDS = "generation,size,md5Hash";

export class GcsWrites {
  private readonly client: GcsClient;

  constructor(client: GcsClient) {
    this.client = client;
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    assertSmall(path, body);
    return putObject(this.client, path, body, condition);
  }

  create(path: string): PieceUpload {
    return new PieceUpload(path, new GcsSink(path, this.client));
  }

  async remove(path: string): Promise<void> {
    await removeObject(this.client, path, "");
  }
}

/** One request until the second piece, then a resumable upload. */
class GcsSink implements PieceSink {
  readonly pieceBytes = STORE_PIECE_BYTES;
  private readonly path: string;
  private readonly client: GcsClient;
  /** The address of the upload, which is a secret: whoever has it may write. */
  private session: string | undefined;
  /** A request had no response: the store may have any part of its bytes. */
  private isUnsure = false;
  private readonly md5 = createHash("md5");
  private hashedBytes = 0;

  constructor(path: string, client: GcsClient) {
    this.path = path;
    this.client = client;
  }

  async send(piece: Piece): Promise<void> {
    await this.sendTo(piece, "*");
  }

  async complete(last: Piece): Promise<Written> {
    if (last.number === 1) return putObject(this.client, this.path, last.bytes);
    const written = await this.sendTo(last, String(last.position + last.bytes.length));
    if (written === undefined) throw new UploadLost(this.path, "the store does not complete it");
    const md5 = this.md5.copy().digest("base64");
    if (written.md5 === undefined || written.md5 === md5) return { etag: written.etag };
    await removeObject(this.client, this.path, `?ifGenerationMatch=${written.etag}`);
    throw new UploadLost(this.path, "the store has received other bytes than those that were sent");
  }

  async abort(): Promise<void> {
    if (this.session === undefined) return;
    const { answer, end, refusal } = await this.request({ method: "DELETE", body: Buffer.alloc(0) });
    // Google answers 499.
    const isGone = [200, 204, 404, 410, 499].includes(answer.statusCode!);
    if (!isGone) throw await refusal();
    await end();
  }

  /** Sends what the store does not have of the piece. Resolves to the object if `total` is its size. */
  private async sendTo({ position, bytes }: Piece, total: string): Promise<WrittenObject | undefined> {
    await this.hash(position, bytes);
    const end = position + bytes.length;
    let at = this.isUnsure ? await this.progress() : position;
    for (;;) {
      if (typeof at !== "number") return at;
      if (at < position || at > end) throw new UploadLost(this.path, `the store has ${at} bytes of ${end}`);
      if (at === end && total === "*") return undefined;
      const range = at === end ? "*" : `${at}-${end - 1}`;
      const next: number | WrittenObject = await this.put(
        bytes.subarray(at - position),
        `bytes ${range}/${total}`,
      );
      if (typeof next === "number" && next <= at) throw unreachable(this.path, `it keeps only ${next} bytes`);
      at = next;
    }
  }

  private async hash(position: number, bytes: Buffer): Promise<void> {
    if (position + bytes.length <= this.hashedBytes) return;
    this.hashedBytes = position + bytes.length;
    await updateHash(this.md5, bytes);
  }

  /** The number of bytes that the store has, or the object if it is complete. */
  private progress(): Promise<number | WrittenObject> {
    return this.put(Buffer.alloc(0), "bytes */*");
  }

  private async put(body: Uint8Array, range: string): Promise<number | WrittenObject> {
    await this.begin();
    this.isUnsure = true;
    const isLast = !range.endsWith("*");
    const headers: Record<string, string> = { "content-range": range };
    if (isLast) headers["x-goog-hash"] = `md5=${this.md5.copy().digest("base64")}`;
    const { answer, end, refusal, json } = await this.request({ method: "PUT", headers, body, once: true });
    const status = answer.statusCode!;
    if (status === 200 || status === 201) return json(writtenOf);
    if (status === 404 || status === 410) throw new UploadLost(this.path, `the store answered ${status}`);
    if (status !== 308) throw await refusal();
    await end();
    this.isUnsure = false;
    const [, last] = /^bytes=0-(\d{1,15})$/.exec(answer.headers.range ?? "") ?? [];
    return last === undefined ? 0 : Number(last) + 1;
  }

  private async begin(): Promise<void> {
    if (this.session !== undefined) return;
    const { answer, end, refusal } = await this.client.send({
      ...uploadOf(this.path, "resumable"),
      headers: { "content-type": "application/json" },
      body: Buffer.from("{}"),
    });
    const status = answer.statusCode!;
    if (status !== 200) throw status === 404 ? noBucket(this.path, await refusal()) : await refusal();
    await end();
    this.session = sessionOf(answer.headers.location, this.path);
  }

  private request(parts: Partial<GcsRequest>) {
    const bytes = parts.body?.length ?? 0;
    return this.client.send({
      ...parts,
      address: this.session!,
      path: this.path,
      access: "write",
      signal: AbortSignal.timeout(millisToSend(bytes)),
    });
  }
}

interface WrittenObject extends Written {
  md5: string | undefined;
}

/** One request with the object's properties and its bytes. */
async function putObject(
  client: GcsClient,
  path: string,
  body: Uint8Array,
  condition?: WriteCondition,
): Promise<Written> {
  const boundary = newUlid();
  const properties = JSON.stringify({ md5Hash: (await md5Of(body)).toString("base64") });
  const asked = {
    ...uploadOf(path, "multipart", condition),
    headers: { "content-type": `multipart/related; boundary=${boundary}` },
    body: Buffer.concat([
      Buffer.from(`--${boundary}\r\ncontent-type: application/json\r\n\r\n${properties}\r\n`),
      Buffer.from(`--${boundary}\r\ncontent-type: application/octet-stream\r\n\r\n`),
      body,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]),
    signal: AbortSignal.timeout(millisToSend(body.length)),
  };
  const { answer, refusal, json } = await client.send(asked);
  if (answer.statusCode === 200) return { etag: (await json(generationOf)).etag };
  const error = await refusal();
  if (answer.statusCode === 412) throw new ConditionFailed(path, condition, error);
  throw answer.statusCode === 404 ? noBucket(path, error) : error;
}

async function removeObject(client: GcsClient, path: string, query: string): Promise<void> {
  const { bucket, key } = bucketAndKey(path);
  const address = `storage/v1/b/${bucket}/o/${encodeURIComponent(key)}${query}`;
  const { answer, end, refusal } = await client.send({ method: "DELETE", address, path, access: "write" });
  if (![200, 204, 404].includes(answer.statusCode!)) throw await refusal();
  await end();
}

function uploadOf(path: string, uploadType: string, condition?: WriteCondition) {
  const { bucket, key } = bucketAndKey(path);
  const query = new URLSearchParams({ uploadType, name: key, fields: FIELDS });
  // There is no generation 0: it is that of an absent object.
  if (condition !== undefined) query.set("ifGenerationMatch", condition === "absent" ? "0" : condition.etag);
  return {
    method: "POST",
    address: `upload/storage/v1/b/${bucket}/o?${query}`,
    path,
    access: "write",
  } as const;
}

/** Only the path of the address counts: a response does not lead to another host. */
function sessionOf(location: string | undefined, path: string): string {
  const isAddress = location !== undefined && URL.canParse(location, "http://store");
  const url = isAddress ? new URL(location, "http://store") : undefined;
  if (url === undefined || url.pathname === "/")
    throw unreachable(path, "it began an upload without an address");
  return url.pathname.slice(1) + url.search;
}

function writtenOf(answer: { md5Hash?: unknown; generation?: unknown }): WrittenObject {
  const md5 = typeof answer.md5Hash === "string" ? answer.md5Hash : undefined;
  return { etag: generationOf(answer).etag, md5 };
}

export function generationOf(answer: { generation?: unknown; size?: unknown }): {
  etag: string;
  bytes: number;
} {
  const bytes = sizeOf(answer.size);
  const etag = String(answer.generation);
  if (/^\d{1,20}$/.test(etag) && bytes !== undefined) return { etag, bytes };
  throw new Error("it gives the object no generation or no size");
}

/** Google writes numbers as strings, other stores as numbers. */
export function sizeOf(size: unknown): number | undefined {
  return /^\d{1,15}$/.test(String(size)) ? Number(size) : undefined;
}

export function noBucket(path: string, cause: Error): ServiceError {
  return new ServiceError("bucket_not_found", `there is no bucket for ${path}: check its name`, { cause });
}

function unreachable(path: string, why: string): ServiceError {
  return new ServiceError("store_unreachable", `the store of ${path} does not respond correctly: ${why}`);
}
