/**
 * Whose state a prefix is. An object there and a row of the database name each other by a token, which each start of a
 * server replaces in both. So a prefix that another database has used since is recognised, and so is a former server
 * that still runs (docs/decisions/0034-state.md). Pure, but for reading and writing the object.
 */

import { STATE_OWNER_BYTES_MAX } from "../contracts/limits/stores.ts";
import { type Database, first, type Statements } from "../database/database.ts";
import { ObjectMissing, type ObjectStore, type WriteCondition } from "../object-store/object-store.ts";
import { stateAddress } from "./state-store.ts";

export const OWNER_OBJECT = stateAddress("owner.json");
const FORMAT = 1;

/** What the database says about its state. */
export interface RecordedState {
  /** The token that both have; empty before the first start. */
  state_token: string;
  /** The token of a start that was in progress; empty if none was. */
  state_next: string;
  /** Where the state was, for messages. */
  state_address: string;
}

/** What the prefix says. */
export interface FoundOwner {
  token: string;
  instance_id: string;
  etag: string;
}

/** What a start finds, and what follows. */
export type Ownership =
  /** The state is this database's, or nobody's and this database has none. */
  | { kind: "ours"; condition: WriteCondition; isFirst: boolean }
  | { kind: "refused"; why: "another_database" | "nothing_there" };

export function ownershipOf(
  { state_token, state_next }: RecordedState,
  found: FoundOwner | undefined,
  isEmpty: boolean,
): Ownership {
  const known = [state_token, state_next].filter((token) => token !== "");
  if (found !== undefined)
    return known.includes(found.token)
      ? { kind: "ours", condition: { etag: found.etag }, isFirst: false }
      : { kind: "refused", why: "another_database" };
  // A start that was cut off before it wrote the object; or a person has removed it, so that this database takes over.
  if (state_token === "" || !isEmpty)
    return { kind: "ours", condition: "absent", isFirst: state_token === "" };
  return { kind: "refused", why: "nothing_there" };
}

export async function recordedState(db: Statements): Promise<RecordedState> {
  return (await first<RecordedState>(db, "SELECT state_token, state_next, state_address FROM owner"))!;
}

/** Undefined if nobody has used the prefix. */
export async function findOwner(store: ObjectStore): Promise<FoundOwner | undefined> {
  try {
    const object = await store.open(OWNER_OBJECT);
    try {
      const buffer = Buffer.alloc(STATE_OWNER_BYTES_MAX);
      let bytes = 0;
      for (let more = -1; more !== 0 && bytes < buffer.length; bytes += more)
        more = await object.read(buffer, bytes, bytes, buffer.length - bytes);
      const { token, instance_id } = JSON.parse(buffer.toString("utf8", 0, bytes)) as FoundOwner;
      return { token, instance_id, etag: object.etag };
    } finally {
      await object.close();
    }
  } catch (error) {
    if (error instanceof ObjectMissing) return undefined;
    throw error;
  }
}

/** The first step of a start. After a kill, the next one finds either token in the object. */
export async function announceToken(
  db: Database,
  found: FoundOwner | undefined,
  next: string,
): Promise<void> {
  await db.run("UPDATE owner SET state_token = ?, state_next = ?", [found?.token ?? "", next]);
}

/** The second. Throws ConditionFailed if somebody else has written it meanwhile. */
export async function writeOwner(
  store: ObjectStore,
  owner: { token: string; instance_id: string; started_time: string },
  condition: WriteCondition,
): Promise<void> {
  const body = `${JSON.stringify({ format: FORMAT, ...owner })}\n`;
  await store.put(OWNER_OBJECT, Buffer.from(body), condition);
}

/** The last. */
export async function recordToken(db: Database, token: string, address: string): Promise<void> {
  await db.run("UPDATE owner SET state_token = ?, state_next = '', state_address = ?", [token, address]);
}
