/** Compares an object of a store with what should be there. */
import { ObjectChanged, ObjectMissing, type ObjectStore } from "../../object-store/object-store.ts";

/** `etag`: undefined if something that is no object is in its place. */
export type Found = { is: "missing" } | { is: "other"; etag?: string } | { is: "same"; etag: string };

/** Whether an object has these bytes. Reads one more of them at most. */
export async function compareObject(store: ObjectStore, path: string, body: Buffer): Promise<Found> {
  const object = await store.open(path).catch(notAnObject);
  if ("is" in object) return object;
  try {
    const there = Buffer.alloc(body.length + 1);
    let filled = 0;
    for (let bytes = -1; bytes !== 0 && filled < there.length; filled += bytes)
      bytes = await object.read(there, filled, filled, there.length - filled);
    const isSame = there.subarray(0, filled).equals(body);
    return { is: isSame ? "same" : "other", etag: object.etag };
  } finally {
    await object.close();
  }
}

/** A directory or a pipe in the place of the object is another one. */
function notAnObject(error: unknown): Found {
  if (error instanceof ObjectMissing) return { is: "missing" };
  if (error instanceof ObjectChanged) return { is: "other" };
  throw error;
}
