/** A server whose state another one takes: a copy of its database, which nothing else keeps apart. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openLog } from "../../src/base/log.ts";
import { OWN_PREFIX, ServerStore } from "../../src/object-store/backends/server-store.ts";
import { FileStore } from "../../src/object-store/files/file-store.ts";
import { writeOwner } from "../../src/state/owner.ts";
import { StateWatch } from "../../src/state/watch.ts";

describe("a state that is watched", () => {
  let directory: string;
  let store: ServerStore;
  let taken = 0;
  beforeEach(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-watch-")));
    const files = new FileStore([{ path: directory, isReadOnly: false }], tmpdir(), undefined);
    store = new ServerStore(files, OWN_PREFIX, `file://${directory}/`);
    taken = 0;
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const look = (token: string) =>
    new StateWatch({
      ...{ store, log: openLog("test", "/dev/null"), token, address: "file:///state/" },
      onTaken: () => taken++,
    }).runOnce();
  const write = (token: string) => writeOwner(store, { token, instance_id: "i", started_time: "" }, "absent");

  it("stops the server if another one has taken it", async () => {
    await write("theirs");
    await look("ours");
    expect(taken).toBe(1);
  });

  it("leaves its owner alone, also while the store does not respond or the object is gone", async () => {
    await look("ours");
    await write("ours");
    await look("ours");
    rmSync(directory, { recursive: true });
    await look("ours");
    expect(taken).toBe(0);
  });
});
