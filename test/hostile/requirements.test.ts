/** The controller reads the files that a `requirements.txt` names. It must neither block nor read without limit. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFailed } from "../../src/batch/records/job-reasons.ts";
import { REQUIREMENTS_BYTES_MAX } from "../../src/contracts/limits/projects.ts";
import { environmentIdentity } from "../../src/engine/environments/environment-id.ts";
import { namedBy } from "../../src/engine/environments/requirements.ts";

const FACTS = {
  executable: "/usr/bin/python3",
  version: "3.11.7",
  platform: "linux",
  sitePackages: [],
  virtualEnv: null,
  hasPip: true,
};

let project: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "quern-requirements-"));
});
afterEach(() => rmSync(project, { recursive: true }));

const identity = (requirements: string) => {
  writeFileSync(join(project, "requirements.txt"), requirements);
  return environmentIdentity(project, "/environments", FACTS, {});
};

/** The message of the API's `requirements_failed`. */
async function refusal(requirements: string): Promise<string> {
  const error = await identity(requirements).then(
    () => new Error("was accepted"),
    (reason: Error) => reason,
  );
  const { code, message } = startFailed(error);
  expect(code, message).toBe("requirements_failed");
  return message;
}

describe("requirements", () => {
  it.each(["-r /dev/zero", "-c /dev/urandom", "-r /dev"])(
    "are refused if they name something other than a file: %s",
    async (line) => {
      await expect(refusal(line)).resolves.toContain("is not a file");
    },
  );

  it("are refused beyond the maximum length", async () => {
    await expect(refusal("#".repeat(REQUIREMENTS_BYTES_MAX + 1))).resolves.toContain("at most");
  });

  // Each took a minute and more, in which the controller was replaced, and began again.
  it.each([
    ["spaces", `x${" ".repeat(500_000)}y`, []],
    ["spaces before a marker", `./x${" ".repeat(500_000)}y;`, ["./x"]],
    ["brackets", `./${"[".repeat(500_000)}`, undefined],
    ["options and another line ending", `x${" -x".repeat(150_000)}\u2028/y`, undefined],
  ])("with many %s are read in one pass", (_, line, candidates) => {
    const started = performance.now();
    const named = namedBy(line, {});
    expect(performance.now() - started).toBeLessThan(5_000);
    if (candidates !== undefined)
      expect(named.candidates.filter((word) => word.length < 9)).toEqual(candidates);
  });

  it("have paths without extras, markers and comments", () => {
    const { candidates } = namedBy("./a[x,y]\n./b ; python_version > '3'  # ./c\n./d[e]f # -r /x\n#/y", {});
    expect(candidates).toEqual(["./a", "./b", "./d[e]f"]);
  });
});
