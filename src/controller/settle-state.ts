/**
 * Opens the state of a server with `--state` at its start: whose it is, that it can be written, and whether the data
 * directory is the last one that was used with it (docs/decisions/0034-state.md). Nothing is changed if it is refused.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { timestamp } from "../base/clock.ts";
import { removeTree } from "../base/files/remove-tree.ts";
import { newToken } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { CannotStart } from "../contracts/cannot-start.ts";
import { jobsDirectory, stateCacheFile } from "../contracts/data-layout.ts";
import { ServiceError } from "../contracts/errors.ts";
import { filesBeside } from "../database/data-directory.ts";
import type { Database } from "../database/database.ts";
import { OWN_PREFIX, ServerStore } from "../object-store/backends/server-store.ts";
import { openStateStore, type StatePlace } from "../object-store/backends/stores.ts";
import { ConditionProbe } from "../object-store/condition-probe.ts";
import type { LocalRoot } from "../object-store/files/allowed-paths.ts";
import { isInside } from "../object-store/files/real-path.ts";
import { ConditionFailed, type ObjectStore } from "../object-store/object-store.ts";
import { FencedStore } from "../state/fenced-store.ts";
import {
  announceToken,
  type FoundOwner,
  findOwner,
  type Ownership,
  ownershipOf,
  type RecordedState,
  recordedState,
  recordToken,
  writeOwner,
} from "../state/owner.ts";
import { forRequest, stateAddress } from "../state/state-store.ts";

/** A state that this server may use. */
export interface OpenedState {
  place: StatePlace;
  /** Addresses `quern://…`. It does not wait. */
  store: ObjectStore;
  recorded: RecordedState;
  found: FoundOwner | undefined;
  ownership: Extract<Ownership, { kind: "ours" }>;
}

export interface SettledState {
  place: StatePlace;
  store: ObjectStore;
  /** What this server has written as its owner. */
  token: string;
  /** The data directory may have files that the state does not have yet. */
  isFirst: boolean;
}

interface OpenOptions {
  /** The address of the prefix; undefined for a server without a state. */
  address: string | undefined;
  dataDir: string;
  db: Database;
  env: NodeJS.ProcessEnv;
  log: Log;
  /** Resolves once this server has the database for certain. */
  confirmOwner: () => Promise<void>;
}

/** A state in files must be where no job and no cache is. */
export function assertStateApart(
  { state, dataDir }: { state: string | undefined; dataDir: string },
  roots: readonly LocalRoot[],
): void {
  if (state === undefined || !state.startsWith("file://")) return;
  const path = state.slice("file://".length, -1);
  const isApart = (other: string) => !isInside(path, other) && !isInside(other, path);
  if (isApart(dataDir) && roots.every((root) => isApart(root.path))) return;
  const others = [dataDir, ...roots.map((root) => root.path)].join(", ");
  throw new CannotStart(
    "option_unusable",
    `--state ${state} must be apart from the data directory and from each --allow-local-root (${others}); give another directory`,
  );
}

/** Undefined without `--state`. Throws `CannotStart` if a person must act. Changes nothing. */
export async function openState({
  address,
  dataDir,
  db,
  env,
  log,
  confirmOwner,
}: OpenOptions): Promise<OpenedState | undefined> {
  const recorded = await recordedState(db);
  if (address === undefined) {
    if (recorded.state_token !== "" || recorded.state_next !== "") throw stateNeeded(recorded);
    return undefined;
  }
  const unfenced = openStateStore(env, await ownDirectory(address), tmpdir());
  const place = { address, store: new FencedStore(unfenced, confirmOwner) };
  const store = new ServerStore(place.store, OWN_PREFIX, address);
  try {
    const opened = await checked({ place, store, recorded }, forRequest(store, log));
    const files = opened.ownership.isFirst ? filesBeside(dataDir) : undefined;
    if (files !== undefined) throw notEmpty(address, files);
    return opened;
  } catch (error) {
    throw refusalOf(address, error);
  }
}

async function checked(
  opened: Pick<OpenedState, "place" | "store" | "recorded">,
  store: ObjectStore,
): Promise<OpenedState> {
  const { recorded, place } = opened;
  const found = await findOwner(store);
  const ownership = ownershipOf(recorded, found, found !== undefined || (await isEmpty(store)));
  if (ownership.kind === "refused") throw notOurs(ownership.why, place.address, recorded);
  if (!(await new ConditionProbe(store).hasConditions(stateAddress(""))))
    throw new CannotStart(
      "state_unusable",
      `the store of --state ${place.address} has no conditional writes, so two servers could use it at once; use another store`,
    );
  return { ...opened, found, ownership };
}

async function isEmpty(store: ObjectStore): Promise<boolean> {
  for await (const page of store.list(stateAddress(""), { sizes: false })) if (page.length > 0) return false;
  return true;
}

/** Takes the state: no former server can take itself for its owner any more. */
export async function takeState(
  { place, store, found, ownership, recorded }: OpenedState,
  { dataDir, db, log, instanceId }: { dataDir: string; db: Database; log: Log; instanceId: string },
): Promise<SettledState> {
  const next = newToken();
  await freshenCache(dataDir, found, next, log);
  await announceToken(db, found, next);
  const owner = { token: next, instance_id: instanceId, started_time: timestamp() };
  try {
    await writeOwner(forRequest(store, log), owner, ownership.condition);
  } catch (error) {
    // A repeated request may have met its own object.
    const now = error instanceof ConditionFailed ? await findOwner(store) : undefined;
    if (now?.token !== next)
      throw error instanceof ConditionFailed ? notOurs("another_database", place.address, recorded) : error;
  }
  await recordToken(db, next, place.address);
  writeCache(dataDir, { token: next });
  return { place, store, token: next, isFirst: ownership.isFirst };
}

interface CacheMark {
  token: string;
  /** The token of a start that was in progress. */
  next?: string;
}

/**
 * Rows on the disk are those of the last server that ran jobs. If another directory was used since, they are not: the
 * jobs compute again what is in no part of their outputs.
 */
async function freshenCache(
  dataDir: string,
  found: FoundOwner | undefined,
  next: string,
  log: Log,
): Promise<void> {
  const mark = readCache(dataDir);
  const isFresh = found === undefined || [mark?.token, mark?.next].includes(found.token);
  if (!isFresh) {
    if (mark !== undefined)
      log.warn({ event: "cache_stale" }, `${dataDir} was not the last data directory with this state`);
    await removeTree(jobsDirectory(dataDir));
  }
  writeCache(dataDir, { token: found?.token ?? "", next });
}

function readCache(dataDir: string): CacheMark | undefined {
  try {
    return JSON.parse(readFileSync(stateCacheFile(dataDir), "utf8")) as CacheMark;
  } catch {
    // Missing, or cut off: nothing is known of what is on the disk.
    return undefined;
  }
}

function writeCache(dataDir: string, mark: CacheMark): void {
  const file = stateCacheFile(dataDir);
  writeFileSync(`${file}.new`, `${JSON.stringify(mark)}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** The real directory of a state in files, which is created; undefined for buckets. */
async function ownDirectory(address: string): Promise<string | undefined> {
  if (!address.startsWith("file://")) return undefined;
  const path = address.slice("file://".length);
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return await realpath(path);
  } catch (error) {
    throw refusalOf(address, error);
  }
}

function refusalOf(address: string, error: unknown): unknown {
  if (error instanceof CannotStart) return error;
  const { message, code } = error as { message: string; code?: string };
  if (error instanceof ServiceError && error.code === "store_unreachable") return error;
  if (!(error instanceof ServiceError) && !/^E[A-Z]+$/.test(String(code))) return error;
  return new CannotStart(
    "state_unusable",
    `the state ${address} cannot be used: ${message}. The server must list, read, write and remove objects there; correct --state (or QUERN_STATE), or give its identity these rights`,
    error,
  );
}

function notEmpty(address: string, files: string): CannotStart {
  return new CannotStart(
    "state_mismatch",
    `the state ${address} is new, but ${files} has files of a server without a state, which would be missing there. Nothing was changed. Start a new server with --state (an empty database and --data-dir), and deploy there; or start this one without --state`,
  );
}

function stateNeeded({ state_address }: RecordedState): CannotStart {
  const where = state_address === "" ? "" : ` (last at ${state_address})`;
  return new CannotStart(
    "state_mismatch",
    `this database keeps its files in an object store${where}: give --state (or QUERN_STATE). Nothing was changed`,
  );
}

function notOurs(
  why: "another_database" | "nothing_there",
  address: string,
  recorded: RecordedState,
): CannotStart {
  const message =
    why === "another_database"
      ? `the state ${address} is not this database's: another database uses it, or has used it since (this one may be a copy, or an older backup). Nothing was changed. Give another --state; or, if no other server uses this one, remove ${address}owner.json to give it to this database`
      : `the state ${address} has nothing of this database, whose files were last in ${recorded.state_address || "another place"}. Nothing was changed. Correct --state, or copy the objects there first`;
  return new CannotStart("state_mismatch", message);
}
