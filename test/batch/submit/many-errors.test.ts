/** Bodies of 64 KiB in which everything is wrong: the first errors are made, and all are counted. */
import { describe, expect, it } from "vitest";
import { parseSubmission } from "../../../src/batch/submit/parse-submission.ts";
import { type ErrorDetails, ServiceError } from "../../../src/contracts/errors.ts";
import { firstErrors } from "../../../src/contracts/field-errors.ts";
import { redriveSchema, submissionSchema } from "../../../src/contracts/jobs.ts";
import { ERRORS_SHOWN_MAX } from "../../../src/contracts/limits/responses.ts";

const MANY = 12_000;
const lister = (more: object) => ({ workers: 1, file_path_lister: { batch_size: 1, ...more } });
const filled = (entry: unknown, count = MANY) => Array.from({ length: count }, () => entry);
const UNKNOWN_KEYS = Object.fromEntries(filled(0, 6_000).map((_, at) => [`k${at}`, 0]));

function refusal(submission: object): { message: string; details: ErrorDetails } {
  try {
    parseSubmission(Buffer.from(JSON.stringify(submission)));
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("a submission with thousands of wrong values", () => {
  it.each<[string, unknown, string]>([
    ["numbers", 0, "Invalid input: expected string, received number (got 0)"],
    ["nulls", null, "Invalid input: expected string, received null (got null)"],
    ["objects", {}, "Invalid input: expected string, received object (got {})"],
    ["empty texts", "", 'must not be empty (got "")'],
    ["texts that are no paths", "x", '"x" is not a path of the shape'],
  ])("names the first %s of store_paths, and counts all", (_, entry, detail) => {
    const { message, details } = refusal(lister({ store_paths: filled(entry) }));
    expect(details.fields).toHaveLength(ERRORS_SHOWN_MAX);
    expect(details.fieldsTotal).toBe(MANY);
    for (const [at, field] of details.fields!.entries()) {
      expect(field.pointer).toBe(`/file_path_lister/store_paths/${at}`);
      expect(field.detail).toContain(detail);
    }
    expect(message).toMatch(/: \/file_path_lister\/store_paths\/0: .* \(and 11999 more\)$/);
  });

  it("names the entries that are wrong, among right ones and other errors", () => {
    const store_paths = ["s3://bucket/", 1, ...filled("s3://bucket/"), 2];
    const { details } = refusal({
      ...lister({ s3_paths: store_paths, includes: [3], twice: 1 }),
      workers: 0,
    });
    expect(details.fieldsTotal).toBe(5);
    expect(details.fields!.map(({ pointer }) => pointer)).toEqual([
      "/workers",
      "/file_path_lister/s3_paths/1",
      `/file_path_lister/s3_paths/${MANY + 2}`,
      "/file_path_lister/includes/0",
      "/file_path_lister/twice",
    ]);
  });

  it("names the first unknown keys, and counts all", () => {
    const { details } = refusal({ ...lister({ store_paths: ["s3://bucket/"] }), ...UNKNOWN_KEYS });
    expect([details.fields!.length, details.fieldsTotal]).toEqual([ERRORS_SHOWN_MAX, 6_000]);
    expect(details.fields![19]).toMatchObject({ pointer: "/k19" });
  });

  it.each([
    { store_paths: filled(0) },
    { store_paths: filled("") },
    { store_paths: ["s3://bucket/"], includes: filled(0), excludes: filled([]) },
  ])("makes no issue for each of them", (lists) => {
    const { error } = submissionSchema.safeParse(lister(lists));
    expect(error!.issues.length).toBeLessThanOrEqual(2 * (ERRORS_SHOWN_MAX + 1));
  });

  it("does not make what a redrive does not show", () => {
    const { error } = redriveSchema.safeParse(UNKNOWN_KEYS);
    const { first, total } = firstErrors(error!.issues, {}, () => ["error"]);
    expect([first.length, total]).toEqual([ERRORS_SHOWN_MAX, 6_000]);
  });
});
