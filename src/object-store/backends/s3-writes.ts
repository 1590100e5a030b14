/**
 * Writes objects of S3: small ones by PUT, others in parts. Each request carries the SHA-256 of its bytes, which the
 * store checks. An upload that is neither completed nor aborted, because the server was killed, stays invisible until
 * `removeUnfinished` or a lifecycle rule of the bucket removes it.
 */

import { newUlid } from "../../base/ids.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { STORE_COMPLETE_MS, STORE_PIECE_BYTES } from "../../contracts/limits/stores.ts";
import { s3Sdk } from "../aws-sdk.ts";
import { ConditionFailed, UploadLost, type WriteCondition, type Written } from "../object-store.ts";
import { type Piece, type PieceSink, PieceUpload } from "../piece-upload.ts";
import { assertSmall, millisToSend } from "../write-limits.ts";
import type { S3Access } from "./s3-client.ts";
import { addSha256, answerIn, etagOf, MET_ANOTHER, placeOf, S3Requests, unlessLost } from "./s3-requests.ts";

/** Tries of a write that met another one to the same name. */
const CONFLICTS_MAX = 6;
const CONFLICT_PAUSE_MS = 50;
/** Names an upload in the object's metadata, by which it is recognised if the response to its completion was lost. */
const UPLOAD_NAME = "quern-upload";

export class S3Writes {
  private readonly requests: S3Requests;

  constructor(access: () => Promise<S3Access>) {
    this.requests = new S3Requests(access);
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    assertSmall(path, body);
    for (let conflicts = 0; ; conflicts++) {
      try {
        return await this.requests.put(path, body, condition);
      } catch (error) {
        const { name, status } = answerIn(error);
        const isBroken = status === 412 || (status === 404 && name !== "NoSuchBucket");
        if (condition !== undefined && isBroken) throw new ConditionFailed(path, condition, error);
        if (!MET_ANOTHER.has(name) || conflicts === CONFLICTS_MAX) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, CONFLICT_PAUSE_MS * 2 ** conflicts));
    }
  }

  create(path: string): PieceUpload {
    return new PieceUpload(path, new S3Sink(path, this.requests));
  }

  async remove(path: string): Promise<void> {
    const { DeleteObjectCommand } = await s3Sdk();
    try {
      await this.requests.ask(path, (client) => client.send(new DeleteObjectCommand(placeOf(path))));
    } catch (error) {
      const { name, status } = answerIn(error);
      if (status !== 404 || name === "NoSuchBucket") throw error;
    }
  }

  removeUnfinished(prefix: string, signal?: AbortSignal): Promise<void> {
    return this.requests.removeUploads(prefix, () => true, signal);
  }
}

/** A PUT until the second piece, then a multipart upload. */
class S3Sink implements PieceSink {
  readonly pieceBytes = STORE_PIECE_BYTES;
  private readonly path: string;
  private readonly requests: S3Requests;
  private readonly name = newUlid();
  private uploadId: string | undefined;
  /** The response to a request that begins an upload was lost: there may be others than this one. */
  private hasOthers = false;
  private readonly parts: { PartNumber: number; ETag: string }[] = [];

  constructor(path: string, requests: S3Requests) {
    this.path = path;
    this.requests = requests;
  }

  async send({ number, bytes }: Piece): Promise<void> {
    const { UploadPartCommand } = await s3Sdk();
    const place = await this.begun();
    const command = new UploadPartCommand({ ...place, PartNumber: number, Body: bytes });
    await addSha256(command, bytes);
    const options = { requestTimeout: millisToSend(bytes.length) };
    const ETag = await this.requests.ask(this.path, (client) => client.send(command, options).then(etagOf));
    this.parts[number - 1] = { PartNumber: number, ETag };
  }

  async complete(last: Piece): Promise<Written> {
    if (last.number === 1) return this.requests.put(this.path, last.bytes);
    if (last.bytes.length > 0 && this.parts[last.number - 1] === undefined) await this.send(last);
    const written = await this.completeParts().catch((error: unknown) => {
      if (!(error instanceof UploadLost)) throw error;
      return this.completedBefore(error);
    });
    await this.removeOthers();
    return written;
  }

  async abort(): Promise<void> {
    if (this.uploadId !== undefined) {
      const { AbortMultipartUploadCommand } = await s3Sdk();
      const command = new AbortMultipartUploadCommand(await this.begun());
      await this.requests.ask(this.path, (client) => client.send(command)).catch(unlessLost);
    }
    await this.removeOthers();
  }

  /** The multipart upload, which begins with the first piece. */
  private async begun(): Promise<{ Bucket: string; Key: string; UploadId: string }> {
    const place = placeOf(this.path);
    if (this.uploadId !== undefined) return { ...place, UploadId: this.uploadId };
    const { CreateMultipartUploadCommand } = await s3Sdk();
    const command = new CreateMultipartUploadCommand({ ...place, Metadata: { [UPLOAD_NAME]: this.name } });
    const id = await this.requests
      .ask(this.path, async (client) => {
        const { UploadId, $metadata } = await client.send(command);
        if (UploadId === undefined) throw new Error("its response has no UploadId");
        if (($metadata.attempts ?? 1) > 1) this.hasOthers = true;
        return UploadId;
      })
      .catch((error: unknown) => {
        if (isUnreachable(error)) this.hasOthers = true;
        throw error;
      });
    this.uploadId = id;
    return { ...place, UploadId: id };
  }

  private async completeParts(): Promise<Written> {
    const { CompleteMultipartUploadCommand } = await s3Sdk();
    const MultipartUpload = { Parts: this.parts };
    const command = new CompleteMultipartUploadCommand({ ...(await this.begun()), MultipartUpload });
    const options = { requestTimeout: STORE_COMPLETE_MS };
    const etag = await this.requests.ask(this.path, (client) => client.send(command, options).then(etagOf));
    return { etag };
  }

  /** An upload that was completed does not exist any more, like one that was lost. */
  private async completedBefore(lost: UploadLost): Promise<Written> {
    const { HeadObjectCommand } = await s3Sdk();
    const head = new HeadObjectCommand(placeOf(this.path));
    const found = await this.requests
      .ask(this.path, (client) => client.send(head))
      .catch((error: unknown) => {
        if (answerIn(error).status !== 404) throw error;
        return undefined;
      });
    if (found?.Metadata?.[UPLOAD_NAME] !== this.name) throw lost;
    return { etag: etagOf(found) };
  }

  private async removeOthers(): Promise<void> {
    if (!this.hasOthers) return;
    const { Key: own } = placeOf(this.path);
    const isOther = (key: string, id: string) => key === own && id !== this.uploadId;
    try {
      await this.requests.removeUploads(this.path, isOther);
    } catch (error) {
      // Not all who may write may list uploads: then a lifecycle rule of the bucket has to remove them.
      if (isUnreachable(error)) throw error;
    }
    this.hasOthers = false;
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "store_unreachable";
}
