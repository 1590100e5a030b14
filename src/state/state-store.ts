/**
 * The state of a server in an object store (`--state`), as the rooms use it: addresses `quern://…`, whatever the store
 * (docs/decisions/0034-state.md). What is there, and what of the data directory is a cache of it, is said there too.
 */
import type { Log } from "../base/log.ts";
import {
  STATE_REQUEST_PATIENCE_MS,
  STORE_PUT_BYTES_MAX,
  STORE_REMOVALS_AT_ONCE,
} from "../contracts/limits/stores.ts";
import { OWN_PREFIX } from "../object-store/backends/server-store.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { type Patience, PatientStore } from "../object-store/patient-store.ts";

/** The address of an object or a prefix of the state. `key` has no slash at its beginning. */
export function stateAddress(key: string): string {
  return `${OWN_PREFIX}${key}`;
}

/** What a job has in the state: its items. */
export function jobPrefix(jobId: string): string {
  return stateAddress(`jobs/${jobId}/`);
}

/** For a request, which waits for a store only for moments. `signal`: aborted when nobody waits any more. */
export function forRequest(store: ObjectStore, log: Log, signal?: AbortSignal): ObjectStore {
  return new PatientStore(store, {
    ...patienceOf(log, signal),
    patienceMs: STATE_REQUEST_PATIENCE_MS,
  });
}

/** For work that goes on by itself, which waits for a store as jobs do. Says in the log once that it waits. */
export function patienceOf(log: Log, signal = new AbortController().signal): Patience {
  let isWaiting = false;
  return {
    signal,
    onWait: ({ message }) => {
      if (!isWaiting)
        log.error({ event: "state_unreachable", why: message }, `${message}: what needs the state waits`);
      isWaiting = true;
    },
    onResume: () => {
      if (isWaiting) log.warn({ event: "state_reached" }, "the state can be reached again; continuing");
      isWaiting = false;
    },
  };
}

/** One request, which is a listing: opening an object asks some stores nothing. */
export async function isThere(store: ObjectStore, address: string): Promise<boolean> {
  for await (const page of store.list(address, { sizes: false }))
    for (const { path } of page) return path === address;
  return false;
}

/** Writes an object of any size that is in memory. It is durable then. */
export async function writeObject(store: ObjectStore, address: string, content: Uint8Array): Promise<void> {
  if (content.length > STORE_PUT_BYTES_MAX) return uploadObject(store, address, [content]);
  await store.put(address, content);
}

/** Writes an object piece by piece. It is durable then; after an error there is none. */
export async function uploadObject(
  store: ObjectStore,
  address: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const upload = await store.create(address);
  try {
    for await (const chunk of content) await upload.write(chunk);
    await upload.complete();
  } catch (error) {
    await upload.abort().catch(() => {});
    throw error;
  }
}

/** Removes all objects whose addresses begin with `prefix`, except those that are `kept`. Resolves to their number. */
export async function removeBelow(
  store: ObjectStore,
  prefix: string,
  isKept: (address: string) => boolean = () => false,
): Promise<number> {
  let removed = 0;
  for await (const page of store.list(prefix, { sizes: false })) {
    const gone = page.filter(({ path }) => !isKept(path));
    for (let at = 0; at < gone.length; at += STORE_REMOVALS_AT_ONCE) {
      const some = gone.slice(at, at + STORE_REMOVALS_AT_ONCE);
      await Promise.all(some.map(({ path }) => store.remove(path)));
    }
    removed += gone.length;
  }
  return removed;
}
