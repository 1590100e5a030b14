/** Reads a part from its store, a chunk at a time. */
import type { ObjectStore } from "../../object-store/object-store.ts";

const READ_BYTES = 1024 * 1024;

/** The chunks of the object, in order. Each is new memory. Throws ObjectMissing if it is not there. */
export async function* chunksOf(store: ObjectStore, path: string): AsyncGenerator<Buffer> {
  const object = await store.open(path);
  try {
    for (let position = 0; ; ) {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      const bytes = await object.read(buffer, 0, position, READ_BYTES);
      if (bytes === 0) return;
      yield buffer.subarray(0, bytes);
      position += bytes;
    }
  } finally {
    await object.close();
  }
}
