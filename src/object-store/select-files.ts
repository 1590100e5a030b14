/**
 * The files that a list of prefixes selects, in the order of the prefixes and then of key bytes (decision 3.3). A file
 * that two prefixes select is taken once; keys that end in `/` are directory markers.
 */
import type { ObjectInfo, ObjectStore } from "./object-store.ts";

export interface SelectedFile extends ObjectInfo {
  /** Which of the prefixes selected it. */
  entry: number;
}

/** Goes on after the file `after`, which was selected by `entry`, where given. */
export async function* selectFiles(
  store: ObjectStore,
  prefixes: readonly string[],
  after?: { entry: number; path: string },
): AsyncGenerator<SelectedFile> {
  for (let entry = after?.entry ?? 0; entry < prefixes.length; entry++) {
    const earlier = prefixes.slice(0, entry);
    for await (const file of store.list(prefixes[entry]!)) {
      if (file.path.endsWith("/") || earlier.some((prefix) => file.path.startsWith(prefix))) continue;
      if (
        after !== undefined &&
        entry === after.entry &&
        Buffer.compare(Buffer.from(file.path), Buffer.from(after.path)) < 0
      )
        continue;
      yield { ...file, entry };
    }
  }
}
