/**
 * Writes objects of Azure: small ones in one request, others in blocks that are committed together. Each request carries
 * the MD5 of its bytes, which the store checks. Blocks that are never committed are invisible; Azure has no request to
 * drop them, and removes them after a week.
 */
import type { BlockBlobClient, RestError } from "@azure/storage-blob";
import { newUlid } from "../../base/ids.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { STORE_COMPLETE_MS, STORE_PIECE_BYTES, STORE_SILENCE_MS } from "../../contracts/limits/stores.ts";
import {
  ConditionFailed,
  ObjectMissing,
  UploadLost,
  type WriteCondition,
  type Written,
} from "../object-store.ts";
import { type Piece, type PieceSink, PieceUpload } from "../piece-upload.ts";
import { bucketAndKey } from "../store-path.ts";
import { assertSmall, md5Of, millisToSend } from "../write-limits.ts";
import { type AzureAccess, toStoreError } from "./azure-access.ts";

/** Codes of responses to writes with a condition. */
const BROKEN_CONDITION: ReadonlySet<string> = new Set(["BlobAlreadyExists", "ConditionNotMet"]);

type Access = () => Promise<AzureAccess>;

export class AzureWrites {
  private readonly access: Access;

  constructor(access: Access) {
    this.access = access;
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    assertSmall(path, body);
    return putBlob(this.access, path, body, condition);
  }

  create(path: string): PieceUpload {
    return new PieceUpload(path, new AzureSink(path, this.access));
  }

  async remove(path: string): Promise<void> {
    const options = {
      deleteSnapshots: "include",
      abortSignal: AbortSignal.timeout(STORE_SILENCE_MS),
    } as const;
    await ask(this.access, path, (blob) => blob.delete(options)).catch((error: Error) => {
      if (!isMissing(error)) throw error;
    });
  }
}

/** One request until the second piece, then blocks. */
class AzureSink implements PieceSink {
  readonly pieceBytes = STORE_PIECE_BYTES;
  private readonly path: string;
  private readonly access: Access;
  /** Part of the names of its blocks: another upload to the same name has others. */
  private readonly name = newUlid();

  constructor(path: string, access: Access) {
    this.path = path;
    this.access = access;
  }

  async send({ number, bytes }: Piece): Promise<void> {
    const options = {
      transactionalContentMD5: await md5Of(bytes),
      abortSignal: AbortSignal.timeout(millisToSend(bytes.length)),
    };
    await ask(this.access, this.path, (blob) =>
      blob.stageBlock(this.blockId(number), bytes, bytes.length, options),
    );
  }

  async complete(last: Piece): Promise<Written> {
    if (last.number === 1) return putBlob(this.access, this.path, last.bytes);
    const blocks = last.bytes.length > 0 ? last.number : last.number - 1;
    if (last.bytes.length > 0) await this.send(last);
    const ids = Array.from({ length: blocks }, (_, at) => this.blockId(at + 1));
    const options = { abortSignal: AbortSignal.timeout(STORE_COMPLETE_MS) };
    // A repeated commit finds its blocks: they are part of the object then.
    const committed = await ask(this.access, this.path, (blob) => blob.commitBlockList(ids, options)).catch(
      (error: Error) => {
        const isLost = codeOf(error) === "InvalidBlockList";
        throw isLost
          ? new UploadLost(this.path, "another write of the same name has dropped its blocks")
          : error;
      },
    );
    if (committed.etag === undefined) throw unreachable(this.path, "its response has no etag");
    return { etag: committed.etag };
  }

  async abort(): Promise<void> {}

  private blockId(number: number): string {
    return Buffer.from(`${this.name}-${String(number).padStart(5, "0")}`).toString("base64");
  }
}

async function putBlob(
  access: Access,
  path: string,
  body: Uint8Array,
  condition?: WriteCondition,
): Promise<Written> {
  const conditions = condition === "absent" ? { ifNoneMatch: "*" } : condition && { ifMatch: condition.etag };
  const options = {
    ...(conditions === undefined ? {} : { conditions }),
    abortSignal: AbortSignal.timeout(millisToSend(body.length)),
  };
  const content = Buffer.from(body.buffer, body.byteOffset, body.length);
  const written = await ask(access, path, (blob) => blob.upload(content, content.length, options)).catch(
    (error: Error) => {
      const isBroken = BROKEN_CONDITION.has(codeOf(error) ?? "") || isMissing(error);
      throw condition !== undefined && isBroken ? new ConditionFailed(path, condition, error) : error;
    },
  );
  await assertUndamaged(access, path, content, written);
  return { etag: written.etag! };
}

/** The client does not send the MD5 of a whole object, but the store says which one it has received. */
async function assertUndamaged(
  access: Access,
  path: string,
  body: Buffer,
  { contentMD5, etag }: { contentMD5?: Uint8Array; etag?: string },
): Promise<void> {
  if (etag === undefined) throw unreachable(path, "its response has no etag");
  if (contentMD5 === undefined || (await md5Of(body)).equals(contentMD5)) return;
  await ask(access, path, (blob) => blob.delete({ conditions: { ifMatch: etag } }));
  throw unreachable(path, "the bytes arrived damaged");
}

/** Throws the error in the words of all stores, with the store's own as its cause. */
async function ask<T>(
  access: Access,
  path: string,
  request: (blob: BlockBlobClient) => Promise<T>,
): Promise<T> {
  const { bucket, key } = bucketAndKey(path);
  const { service, identity } = await access();
  try {
    return await request(service.getContainerClient(bucket).getBlockBlobClient(key));
  } catch (error) {
    throw toStoreError(error as RestError, path, identity, "write");
  }
}

function codeOf(error: Error): string | undefined {
  return (error.cause as RestError | undefined)?.code;
}

function isMissing(error: Error): boolean {
  return error instanceof ObjectMissing;
}

function unreachable(path: string, why: string): ServiceError {
  return new ServiceError("store_unreachable", `${path} could not be written: ${why}`);
}
