/** Makes what was written durable. */
import { open } from "node:fs/promises";

/** Once this resolves, a file's content or a directory's names are on the disk. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
