/** `/-/backups`: takes a backup, and sends it as it is read (docs/contract/operations.md#backup). */
import { Hono } from "hono";
import type { Backups } from "../backup/take-backup.ts";
import { archiveOf } from "../backup/write-archive.ts";
import { streamText } from "./answers/stream-text.ts";
import { whenClosed } from "./requests/connection.ts";

export function backupRoutes(backups: Backups): Hono {
  const app = new Hono();
  app.post("/-/backups", async (c) => {
    const archive = backups.withSnapshot(archiveOf);
    whenClosed(c, () => {
      archive.return(undefined).catch(() => {});
    });
    // An error until here has a response of its own.
    const first = await archive.next();
    return streamText(c, startingWith(first, archive), "application/x-tar");
  });
  return app;
}

async function* startingWith(
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
