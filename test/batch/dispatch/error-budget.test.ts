/** How much of the errors of failed batches a job keeps. */
import { describe, expect, it } from "vitest";
import { ErrorBudget } from "../../../src/batch/dispatch/error-budget.ts";
import {
  ERROR_CUT_LENGTH,
  ERROR_KINDS_WHOLE_MAX,
  ERRORS_WHOLE_BYTES_MAX,
} from "../../../src/contracts/limits/jobs.ts";

const fault = (message: string, type = "ValueError") => ({
  ...{ stage: "predict", type, message },
  traceback: `Traceback (most recent call last):\n${type}: ${message}\n`,
});

describe("the errors of failed batches", () => {
  it("are whole until they have used up the job's budget; then one of each kind is, and the log says so once", () => {
    const lines: string[] = [];
    const errors = new ErrorBudget((line) => lines.push(line));
    const long = fault(`row 17: ${"x".repeat(8_000)}`);
    const size = JSON.stringify(long).length;
    const whole = Math.ceil(ERRORS_WHOLE_BYTES_MAX / size);
    for (let i = 0; i < whole; i++) expect(errors.keep(long).fault).toEqual(long);
    // The first of its kind since then.
    expect(errors.keep(long).fault).toEqual(long);
    expect(lines).toEqual([]);
    const { fault: cut, group } = errors.keep(long);
    expect(cut).toMatchObject({ stage: "predict", type: "ValueError", traceback: "" });
    expect(cut.message).toMatch(/^row 17: x+… \(cut: 8008 characters in all\)$/);
    expect(cut.message).toHaveLength(ERROR_CUT_LENGTH);
    expect(group).toMatch(/^ValueError: row #: x+$/);
    for (let i = 0; i < 10; i++) errors.keep(long);
    expect(lines).toEqual([expect.stringContaining("have used up their space")]);
    const other = fault("a new cause");
    expect(errors.keep(other).fault).toEqual(other);
    expect(errors.keep(other).fault).toEqual({ ...other, traceback: "" });
  });

  it("stay in the group of the whole message, whatever is cut", () => {
    const message = `got ${Array.from({ length: 100 }, (_, i) => i / 7).join(", ")}`;
    const errors = new ErrorBudget(() => {}, 1);
    const { group } = errors.keep(fault(message));
    errors.keep(fault(message));
    expect(errors.keep(fault(message)).fault.message).toHaveLength(ERROR_CUT_LENGTH);
    expect(errors.keep(fault(message)).group).toBe(group);
  });

  it("are whole for a limited number of kinds beyond the budget", () => {
    const errors = new ErrorBudget(() => {}, 0);
    const kept = Array.from({ length: 2 * ERROR_KINDS_WHOLE_MAX }, (_, i) =>
      errors.keep(fault("m", `E${i}x`)),
    );
    const whole = kept.filter(({ fault: { traceback } }) => traceback !== "");
    expect(whole).toHaveLength(ERROR_KINDS_WHOLE_MAX);
  });

  it("leave out the HTTP response, and beyond the budget the last lines of a worker that died", () => {
    const evidence = { signal: "SIGKILL", last_lines: ["a line"] };
    const death = { ...fault("the worker died", "WorkerDied"), evidence };
    const errors = new ErrorBudget(() => {}, 1);
    expect(errors.keep({ ...death, status_code: 418, detail: "x".repeat(60_000) }).fault).toEqual(death);
    errors.keep(death);
    expect(errors.keep(death).fault).toEqual({ ...death, traceback: "", evidence: { signal: "SIGKILL" } });
  });
});
