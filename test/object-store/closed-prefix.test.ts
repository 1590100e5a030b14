/** The server's own state in a bucket that submissions reach too. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ClosedPrefix } from "../../src/object-store/closed-prefix.ts";
import { FileStore } from "../../src/object-store/files/file-store.ts";

describe("a store with a closed prefix", () => {
  let directory: string;
  let store: ClosedPrefix;
  beforeEach(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-closed-")));
    for (const path of ["state/jobs", "state-of-mind"]) mkdirSync(join(directory, path), { recursive: true });
    for (const path of ["a", "state/owner.json", "state/jobs/b", "state-of-mind/c"])
      writeFileSync(join(directory, path), path);
    const files = new FileStore([{ path: directory, isReadOnly: false }], tmpdir(), undefined);
    store = new ClosedPrefix(files, `file://${directory}/state/`);
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const address = (path: string) => `file://${directory}/${path}`;

  it.each([
    ["opening", (path: string) => store.open(path)],
    ["writing", (path: string) => store.put(path, Buffer.from("x"))],
    ["uploading", (path: string) => store.create(path)],
    ["removing", (path: string) => store.remove(path)],
    ["removing the rest", (path: string) => store.removeUnfinished(path)],
    ["checking", (path: string) => store.knowsConditions(path)],
    ["listing", (path: string) => store.list(path, { sizes: false }).next()],
  ])("%s of an object below it is refused", async (_, access) => {
    const spellings = [
      "state/owner.json",
      "x/../state/o",
      "/state/o",
      "./state/o",
      "state/./o",
      "a/b/../../state/o",
    ];
    for (const path of spellings)
      await expect(access(address(path)), path).rejects.toThrow("in the state of the server");
  });

  it("leaves its objects out of listings", async () => {
    const found: string[] = [];
    for await (const page of store.list(address(""), { sizes: false }))
      found.push(...page.map(({ path }) => path));
    expect(found.sort()).toEqual([address("a"), address("state-of-mind/c")]);
  });

  it("serves all others", async () => {
    await store.put(address("d"), Buffer.from("d"));
    const object = await store.open(address("d"));
    expect(object.bytes).toBe(1);
    await object.close();
  });
});
