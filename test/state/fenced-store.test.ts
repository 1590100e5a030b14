/** A store in which only the server writes that has the database. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileStore } from "../../src/object-store/files/file-store.ts";
import type { ObjectStore } from "../../src/object-store/object-store.ts";
import { FencedStore } from "../../src/state/fenced-store.ts";

describe("a server that has lost its database", () => {
  let directory: string;
  let free: ObjectStore;
  let fenced: ObjectStore;
  let isOwner: boolean;
  const at = (name: string) => `file://${directory}/${name}`;
  const namesOf = async () => {
    const names: string[] = [];
    for await (const page of free.list(at(""), { sizes: false }))
      names.push(...page.map(({ path }) => path.slice(at("").length)));
    return names;
  };

  beforeEach(async () => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-fenced-")));
    free = new FileStore([{ path: directory, isReadOnly: false }], tmpdir(), undefined);
    isOwner = true;
    fenced = new FencedStore(free, async () => {
      if (!isOwner) throw new Error("another server has taken it");
    });
    await fenced.put(at("kept"), Buffer.from("1"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("writes and removes nothing, and may read", async () => {
    isOwner = false;
    const taken = /another server has taken it/;
    await expect(fenced.put(at("new"), Buffer.from("2"))).rejects.toThrow(taken);
    await expect(fenced.create(at("large"))).rejects.toThrow(taken);
    await expect(fenced.remove(at("kept"))).rejects.toThrow(taken);
    await expect(fenced.removeUnfinished(at(""))).rejects.toThrow(taken);
    expect(await namesOf()).toEqual(["kept"]);
    expect((await fenced.open(at("kept"))).bytes).toBe(1);
  });

  it("completes no upload that it had begun", async () => {
    const upload = await fenced.create(at("large"));
    await upload.write(Buffer.from("2"));
    isOwner = false;
    await expect(upload.complete()).rejects.toThrow(/another server has taken it/);
    await upload.abort();
    expect(await namesOf()).toEqual(["kept"]);
  });
});
