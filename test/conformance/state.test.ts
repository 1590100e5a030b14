/** The state of a server in each kind of store: its owner, directories as objects, and their removal. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWN_PREFIX, ServerStore } from "../../src/object-store/backends/server-store.ts";
import { openStateStore } from "../../src/object-store/backends/stores.ts";
import { ConditionFailed, type ObjectStore } from "../../src/object-store/object-store.ts";
import { findOwner, writeOwner } from "../../src/state/owner.ts";
import { isThere, removeBelow, stateAddress, writeObject } from "../../src/state/state-store.ts";
import { StoredTrees } from "../../src/state/trees.ts";
import { STORES, type TestStore } from "../harness/stores.ts";

const owner = (token: string) => ({ token, instance_id: "i", started_time: "" });

describe.each(STORES)("a state in $name", ({ start, isInstalled }) => {
  let server: TestStore;
  let store: ObjectStore;
  let directory: string;
  beforeAll(async () => {
    if (!isInstalled) return;
    server = await start();
    Object.assign(process.env, server.env);
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-state-")));
    const inner = openStateStore(process.env, server.roots[0], tmpdir());
    store = new ServerStore(inner, OWN_PREFIX, `${server.base}/state/`);
  }, 120_000);
  afterAll(async () => {
    await server?.stop();
    if (isInstalled) rmSync(directory, { recursive: true });
  });

  it.runIf(isInstalled)("has one owner, whatever two servers write at once", async () => {
    expect(await findOwner(store)).toBeUndefined();
    await writeOwner(store, owner("a"), "absent");
    await expect(writeOwner(store, owner("b"), "absent")).rejects.toThrow(ConditionFailed);
    const first = (await findOwner(store))!;
    expect(first).toMatchObject({ token: "a", instance_id: "i" });
    await writeOwner(store, owner("c"), { etag: first.etag });
    await expect(writeOwner(store, owner("d"), { etag: first.etag })).rejects.toThrow(ConditionFailed);
    expect(await findOwner(store)).toMatchObject({ token: "c" });
  });

  it.runIf(isInstalled)("brings directories back as they were, and without what came later", async () => {
    const directoryOf = (name: string) => join(directory, name);
    const make = (isWhole: () => Promise<boolean>) =>
      new StoredTrees({
        ...{ store, patient: store, kind: "projects", directoryOf, isWhole },
        incomingOf: (name, chance) => directoryOf(`${name}.${chance}`),
      });
    const trees = make(async () => true);
    mkdirSync(join(directory, "p", "empty name"), { recursive: true });
    writeFileSync(join(directory, "p", "a.py"), "a".repeat(3_000_000), { mode: 0o755 });
    writeFileSync(join(directory, "p", "empty name", "b:c.txt"), "");
    writeFileSync(join(directory, "p", "cache.pyc"), "later");
    await trees.keep("p", ["a.py", "empty name/b:c.txt"]);
    // It never changes: what is there stays.
    await trees.keep("p");
    rmSync(directoryOf("p"), { recursive: true });
    const fetched = await Promise.all([trees.fetch("p"), trees.fetch("p", true), trees.fetch("missing")]);
    expect(fetched).toEqual([true, true, false]);
    expect(readdirSync(directory)).toEqual(["p"]);
    expect(readdirSync(directoryOf("p"), { recursive: true }).sort()).toEqual([
      "a.py",
      "empty name",
      "empty name/b:c.txt",
    ]);
    expect(readFileSync(join(directory, "p", "a.py"), "utf8")).toBe("a".repeat(3_000_000));
    rmSync(directoryOf("p"), { recursive: true });
    await expect(make(async () => false).fetch("p")).rejects.toThrow("is damaged");
    expect(readdirSync(directory)).toEqual([]);
    await trees.remove("p");
    expect(await trees.fetch("p")).toBe(false);
  });

  it.runIf(isInstalled)("removes what is below a prefix, and nothing beside it", async () => {
    for (const key of ["jobs/a/items", "jobs/a/items-0-1", "jobs/ab/items", "jobs/b/items"])
      await writeObject(store, stateAddress(key), Buffer.from(key));
    expect(await removeBelow(store, stateAddress("jobs/a/"))).toBe(2);
    expect(await removeBelow(store, stateAddress("jobs/a/"))).toBe(0);
    const left = ["jobs/a/items", "jobs/ab/items", "jobs/b/items"].map((key) =>
      isThere(store, stateAddress(key)),
    );
    expect(await Promise.all(left)).toEqual([false, true, true]);
  });
});
