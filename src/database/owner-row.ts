/**
 * The row of the controller that owns the database: its epoch, the boot of the machine in which it started, and the
 * instance of its data directory.
 */
import { type Database, first, type Statements } from "./database.ts";

/** The next owner's epoch: higher than that of every controller before. */
export async function takeEpoch(db: Database): Promise<number> {
  return db.transaction(async (tx) => {
    await tx.run("UPDATE owner SET epoch = epoch + 1");
    return (await first<{ epoch: number }>(tx, "SELECT epoch FROM owner"))!.epoch;
  });
}

/**
 * Records the boot of the machine in which the owner runs. Resolves to the one before, or null if none was recorded.
 */
export async function takeBoot(tx: Statements, boot: string | undefined): Promise<string | null> {
  const before = await first<{ boot: string | null }>(tx, "SELECT boot FROM owner");
  await tx.run("UPDATE owner SET boot = ?", [boot ?? null]);
  return before!.boot;
}

/** The id of the directory that the database belongs to; empty if no release with instances has used it. */
export async function recordedInstance(db: Statements): Promise<string> {
  return (await first<{ instance_id: string }>(db, "SELECT instance_id FROM owner"))!.instance_id;
}

export async function recordInstance(db: Statements, id: string): Promise<void> {
  await db.run("UPDATE owner SET instance_id = ?", [id]);
}
