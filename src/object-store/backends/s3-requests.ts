/** Sends requests to S3, and says what its errors mean in the words of all stores. */
import { subtle } from "node:crypto";
import type { ListMultipartUploadsCommandOutput, S3Client, S3ServiceException } from "@aws-sdk/client-s3";
import { ServiceError } from "../../contracts/errors.ts";
import { STORE_UPLOAD_PAGES_MAX } from "../../contracts/limits/stores.ts";
import { s3Sdk } from "../aws-sdk.ts";
import { ObjectMissing, UploadLost, type WriteCondition, type Written } from "../object-store.ts";
import { storeError } from "../store-errors.ts";
import { bucketAndKey } from "../store-path.ts";
import { millisToSend } from "../write-limits.ts";
import type { S3Access } from "./s3-client.ts";

const CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role";
const CURES = {
  read: `give the server credentials that may list and read it (${CREDENTIALS}), and check AWS_REGION`,
  write: `give the server credentials that may write it: s3:PutObject, s3:GetObject, s3:DeleteObject and s3:AbortMultipartUpload (${CREDENTIALS}), and check AWS_REGION`,
};

/** Another write to the same name was running. The next try says which of them has won. */
export const MET_ANOTHER: ReadonlySet<string> = new Set(["ConditionalRequestConflict", "OperationAborted"]);

/** Uploads in a page of a listing: with keys of 1,024 characters it fits into STORE_ERROR_BYTES_MAX. */
const UPLOADS_PAGE = 50;

interface UploadMarkers {
  KeyMarker?: string;
  UploadIdMarker?: string;
}

/** The step of the SDK that signs a request. */
type Next = (args: { request: { headers: Record<string, string> } }) => Promise<unknown>;

/** Requests of writes. */
export class S3Requests {
  private readonly access: () => Promise<S3Access>;

  constructor(access: () => Promise<S3Access>) {
    this.access = access;
  }

  /** Throws UploadLost if the upload does not exist, and ServiceErrors whose cause is the SDK's error. */
  async ask<T>(path: string, request: (client: S3Client) => Promise<T>): Promise<T> {
    const { client, identity } = await this.access();
    return request(client).catch((error: S3ServiceException) => {
      if (error.name === "NoSuchUpload") throw new UploadLost(path, "the store does not know it any more");
      throw toStoreError(error, path, identity, "write");
    });
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    const { PutObjectCommand } = await s3Sdk();
    const unless = condition === "absent" ? { IfNoneMatch: "*" } : condition && { IfMatch: condition.etag };
    const command = new PutObjectCommand({ ...placeOf(path), Body: body, ...unless });
    await addSha256(command, body);
    const options = { requestTimeout: millisToSend(body.length) };
    return { etag: await this.ask(path, (client) => client.send(command, options).then(etagOf)) };
  }

  /**
   * Removes the uploads to keys that begin with that of `prefix`, if `isUnwanted`. Throws if the store lists without
   * end: more than STORE_UPLOAD_PAGES_MAX, or a page that does not continue after the one before.
   */
  async removeUploads(
    prefix: string,
    isUnwanted: (key: string, id: string) => boolean,
    abortSignal?: AbortSignal,
  ): Promise<void> {
    const { AbortMultipartUploadCommand, ListMultipartUploadsCommand } = await s3Sdk();
    const { Bucket, Key: Prefix } = placeOf(prefix);
    let from: UploadMarkers | undefined = {};
    for (let pages = 0; from !== undefined; pages++) {
      if (pages === STORE_UPLOAD_PAGES_MAX)
        throw new Error(
          `the store lists more than ${pages} pages of uploads; remove them by a lifecycle rule`,
        );
      abortSignal?.throwIfAborted();
      const command = new ListMultipartUploadsCommand({ Bucket, Prefix, MaxUploads: UPLOADS_PAGE, ...from });
      const page: ListMultipartUploadsCommandOutput = await this.ask(prefix, (client) =>
        client.send(command, { abortSignal }),
      );
      for (const { Key = "", UploadId = "" } of page.Uploads ?? []) {
        if (!Key.startsWith(Prefix) || !isUnwanted(Key, UploadId)) continue;
        abortSignal?.throwIfAborted();
        const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId });
        await this.ask(prefix, (client) => client.send(abort, { abortSignal })).catch(unlessLost);
      }
      from = markersAfter(from, page);
    }
  }
}

/** Where the next page begins; undefined after the last one. Ids of uploads to one key are in no order. */
function markersAfter(
  from: UploadMarkers,
  {
    IsTruncated,
    NextKeyMarker: KeyMarker,
    NextUploadIdMarker: UploadIdMarker,
  }: ListMultipartUploadsCommandOutput,
): UploadMarkers | undefined {
  if (IsTruncated !== true || !KeyMarker) return undefined;
  const order = Buffer.compare(Buffer.from(KeyMarker), Buffer.from(from.KeyMarker ?? ""));
  if (order < 0 || (order === 0 && UploadIdMarker === from.UploadIdMarker))
    throw new Error("the store's listing of uploads does not continue after the page before");
  return { KeyMarker, ...(UploadIdMarker ? { UploadIdMarker } : {}) };
}

export function placeOf(path: string): { Bucket: string; Key: string } {
  const { bucket, key } = bucketAndKey(path);
  return { Bucket: bucket, Key: key };
}

export function etagOf({ ETag }: { ETag?: string | undefined }): string {
  if (ETag === undefined) throw new Error("its response has no ETag");
  return ETag;
}

/** An upload that is gone needs not be removed. */
export function unlessLost(error: unknown): void {
  if (!(error instanceof UploadLost)) throw error;
}

/** The name and the status of the SDK's error, which is the cause of ours. */
export function answerIn(error: unknown): { name: string; status: number | undefined } {
  const { name, $metadata } = ((error as Error).cause ?? {}) as Partial<S3ServiceException>;
  return { name: name ?? "", status: $metadata?.httpStatusCode };
}

/** The SDK signs this digest. It would compute it on the event loop: 5 ms for a piece. */
export async function addSha256(command: object, bytes: Uint8Array): Promise<void> {
  const digest = await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
  const sha256 = Buffer.from(digest).toString("hex");
  const step = (next: Next) => (args: Parameters<Next>[0]) => {
    args.request.headers["x-amz-content-sha256"] = sha256;
    return next(args);
  };
  const { middlewareStack } = command as { middlewareStack: { add(step: never, where: object): void } };
  middlewareStack.add(step as never, { step: "build", name: "addSha256" });
}

export function toObjectError(error: S3ServiceException, path: string, identity: string): Error {
  return error.$metadata?.httpStatusCode === 404
    ? new ObjectMissing(path, error)
    : toStoreError(error, path, identity, "read");
}

export function toStoreError(
  error: S3ServiceException,
  path: string,
  identity: string,
  access: "read" | "write",
): Error {
  const status = error.$metadata?.httpStatusCode;
  if (error.name === "NoSuchBucket")
    return new ServiceError(
      "bucket_not_found",
      `there is no bucket for ${path}: check its name, and that AWS_ENDPOINT_URL_S3 and AWS_REGION lead to the right store`,
      { cause: error },
    );
  const isRepeatable = MET_ANOTHER.has(error.name);
  const refusal = { path, access, status: isRepeatable ? undefined : status, identity, cure: CURES[access] };
  return storeError(error, refusal);
}
