/** The computed results of an application, whose sizes user code chooses. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import {
  RESOURCE_STATE_BYTES_MAX,
  RESULT_SHOWN_BYTES_MAX,
  VALUES_SHOWN_BYTES_MAX,
} from "../../src/contracts/limits/responses.ts";
import { Artifacts } from "../../src/legacy/artifacts.ts";

describe("results of an application", () => {
  const root = mkdtempSync(join(tmpdir(), "artifacts-"));
  const artifacts = new Artifacts(root);
  afterAll(() => rmSync(root, { recursive: true }));

  /** Writes the file of a result; returns the path. */
  const write = (id: string, name: string, text: string) => {
    mkdirSync(join(root, id), { recursive: true });
    writeFileSync(join(root, id, name), text);
    return join(root, id, name);
  };
  const sized = (bytes: number) => `{"value":"${"v".repeat(bytes - '{"value":""}'.length)}"}`;

  it("are values and metrics as they were written, and Infinity and NaN as texts", async () => {
    write("a", "value.json", '{"value":{"é":[1,NaN,"NaN",-Infinity,null]},"keys":"int"}');
    write("a", "metrics.json", '{"loss":0.5}');
    const shown = { bytesLeft: 1000 };
    expect(await artifacts.value("a", shown)).toEqual({
      content: { é: [1, "NaN", "NaN", "-Infinity", null] },
    });
    expect(shown.bytesLeft).toBeLessThan(1000);
    expect(await artifacts.metrics("a")).toMatchObject({ content: { loss: 0.5 } });
    expect([await artifacts.value("none", shown), await artifacts.metrics("none")]).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("are left out if they are too long", async () => {
    const shown = { bytesLeft: VALUES_SHOWN_BYTES_MAX };
    write("short", "value.json", sized(RESULT_SHOWN_BYTES_MAX));
    const file = write("long", "value.json", sized(RESULT_SHOWN_BYTES_MAX + 1));
    const leftOut = { file, bytes: RESULT_SHOWN_BYTES_MAX + 1 };
    expect(await artifacts.value("long", shown)).toEqual({ leftOut });
    for (let n = 0; n < VALUES_SHOWN_BYTES_MAX / RESULT_SHOWN_BYTES_MAX; n++)
      expect(await artifacts.value("short", shown)).toHaveProperty("content");
    expect(await artifacts.value("short", shown)).toHaveProperty("leftOut");
    const metrics = write("long", "metrics.json", "");
    truncateSync(metrics, 8 * 1024 ** 3);
    expect(await artifacts.metrics("long")).toEqual({ leftOut: { file: metrics, bytes: 8 * 1024 ** 3 } });
  });

  it("have failed if their state is too long", async () => {
    const state = write("state", "state.json", "");
    truncateSync(state, 8 * 1024 ** 3);
    expect((await artifacts.states(["state"])).get("state")).toMatchObject({
      state: "failed",
      reason: `its state has ${8 * 1024 ** 3} bytes, more than ${RESOURCE_STATE_BYTES_MAX}; deploy it again`,
    });
    await artifacts.forgetFailures(["state"]);
    expect(await artifacts.missing(["state"])).toEqual(["state"]);
    expect(await artifacts.hasFailed(["state"])).toBe(false);
  });

  it("are not waited for if a pipe is in their place", async () => {
    mkdirSync(join(root, "pipe"));
    for (const name of ["value.json", "state.json"]) execFileSync("mkfifo", [join(root, "pipe", name)]);
    expect(await artifacts.value("pipe", { bytesLeft: 1000 })).toBeUndefined();
    expect((await artifacts.states(["pipe"])).size).toBe(0);
  });
});
