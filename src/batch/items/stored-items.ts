/**
 * The items of jobs as objects of the server's state (`--state`). Inline items are one object. What is copied while a
 * job is enqueued is a sequence of objects, because objects cannot be appended to; the database names each of them, and
 * where it begins. Objects of an epoch are never replaced by another one's: names have the epoch.
 */
import { type Database, first, type Statements } from "../../database/database.ts";
import { SERVER_PREFIX } from "../../object-store/backends/server-store.ts";
import type { ObjectStore, OpenObject } from "../../object-store/object-store.ts";
import { expectObjects, giveUpObjects, nameObjects } from "../../state/garbage.ts";
import { jobPrefix, writeObject } from "../../state/state-store.ts";
import type { ItemsStore, ItemsWriter } from "../records/items-file.ts";
import { FormerOwner } from "../records/owned-job.ts";
import { inputIfKept } from "../records/stored-input.ts";
import { type ItemPiece, piecesFrom, removePieces, savePiece } from "./item-pieces.ts";
import { PiecedObject } from "./pieced-object.ts";

const WHOLE = "items";
const OWN_OUTPUT = "SELECT prefix FROM job_outputs WHERE job_id = ? AND prefix LIKE ?";

export interface StoredItemsOptions {
  db: Database;
  epoch: number;
  /** For submissions, which wait for it only for moments. */
  store: ObjectStore;
}

export class StoredItems implements ItemsStore {
  private readonly options: StoredItemsOptions;

  constructor(options: StoredItemsOptions) {
    this.options = options;
  }

  /** The server's disk has none of it. */
  async admit(): Promise<void> {}

  async write(jobId: string, content: Buffer): Promise<void> {
    const { db, epoch, store } = this.options;
    await expectObjects(db, jobPrefix(jobId), epoch);
    await writeObject(store, jobPrefix(jobId) + WHOLE, content);
  }

  named(tx: Statements, jobId: string): Promise<void> {
    return nameObjects(tx, jobPrefix(jobId));
  }

  /** Nobody waits for the store: the object is garbage now, which the next sweep removes. */
  async forget(jobId: string): Promise<void> {
    // Without a database, the next start finds it by its epoch.
    await giveUpObjects(this.options.db, jobPrefix(jobId)).catch(() => {});
  }

  writer(jobId: string, store: ObjectStore): ItemsWriter {
    return new StoredItemsWriter(this.options, jobId, store);
  }

  async open(jobId: string, store: ObjectStore): Promise<OpenObject> {
    const { db } = this.options;
    const pieces = await piecesFrom(db, jobId);
    if (pieces.length === 0) return store.open(jobPrefix(jobId) + WHOLE);
    return new PiecedObject({ store, prefix: jobPrefix(jobId), load: () => piecesFrom(db, jobId) }, pieces);
  }

  /** Also its output, if the server keeps that. Most jobs have neither: nothing is looked for then. */
  async giveUp(tx: Statements, jobId: string): Promise<void> {
    const input = await inputIfKept(tx, jobId);
    const isWhole = input?.kind === "items" && input.lines === undefined;
    if (isWhole || (await piecesFrom(tx, jobId)).length > 0) await giveUpObjects(tx, jobPrefix(jobId));
    await removePieces(tx, jobId, 0);
    const output = await first<{ prefix: string }>(tx, OWN_OUTPUT, [jobId, `${SERVER_PREFIX}%`]);
    if (output !== undefined) await giveUpObjects(tx, output.prefix);
  }
}

class StoredItemsWriter implements ItemsWriter {
  bytes = 0;
  waitingBytes = 0;
  private readonly options: StoredItemsOptions;
  private readonly jobId: string;
  private readonly store: ObjectStore;
  private waiting: Buffer[] = [];

  constructor(options: StoredItemsOptions, jobId: string, store: ObjectStore) {
    this.options = options;
    this.jobId = jobId;
    this.store = store;
  }

  async open(committedBytes: number): Promise<void> {
    await removePieces(this.options.db, this.jobId, committedBytes);
    this.bytes = committedBytes;
    this.waiting = [];
    this.waitingBytes = 0;
  }

  append(content: Buffer): void {
    this.waiting.push(content);
    this.bytes += content.length;
    this.waitingBytes += content.length;
  }

  async flush(): Promise<void> {
    const { db, epoch } = this.options;
    const content = Buffer.concat(this.waiting);
    if (content.length === 0) return;
    const start = this.bytes - content.length;
    const piece: ItemPiece = { start, bytes: content.length, name: `${WHOLE}-${start}-${epoch}` };
    await writeObject(this.store, jobPrefix(this.jobId) + piece.name, content);
    if (!(await savePiece(db, this.jobId, epoch, piece))) throw new FormerOwner();
    this.waiting = [];
    this.waitingBytes = 0;
  }

  async close(): Promise<void> {}
}
