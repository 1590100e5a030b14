/** Why a job ended, and what a person does about it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { unexpected } from "../../../src/batch/records/job-reasons.ts";

it("a refusal of the operating system has its cure, and only a fault in Quern is to be reported", () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-reasons-"));
  let refusal: unknown;
  try {
    mkdirSync(directory);
  } catch (error) {
    refusal = error;
  }
  rmSync(directory, { recursive: true });
  expect(unexpected(refusal as Error)).toMatchObject({
    message: expect.stringContaining("EEXIST"),
    hint: "correct what it says on the server, then continue with `quern job resume API JOB`",
  });
  expect(unexpected(new TypeError("x is undefined")).hint).toContain("please report it");
});
