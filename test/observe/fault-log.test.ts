import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/contracts/errors.ts";
import { FLOOD_LINES_MAX, FLOOD_WINDOW_MS } from "../../src/contracts/limits/logs.ts";
import { type FaultLine, FaultLog } from "../../src/observe/fault-log.ts";

describe("the log of 5xx answers", () => {
  const lines: FaultLine[] = [];
  const log = new FaultLog((line) => lines.push(line));
  const fail = (code: ErrorCode, requestId: string) =>
    log.record(new ServiceError(code, "because"), { requestId, method: "POST", url: "/a?key=secret" });
  beforeEach(() => {
    lines.length = 0;
    vi.useFakeTimers();
  });
  afterEach(() => vi.useRealTimers());

  it("has one line for each, without the query, and none for errors of the caller or the predictor", () => {
    const ofOthers = ["prediction_failed", "rate_limited", "transfer_encoding_not_supported"] as const;
    for (const code of ["worker_died", ...ofOthers, "internal_error"] as const) fail(code, code);
    expect(lines.map(({ level, code, request_id, path }) => [level, code, request_id, path])).toEqual([
      ["warn", "worker_died", "worker_died", "/a"],
      ["error", "internal_error", "internal_error", "/a"],
    ]);
    vi.advanceTimersByTime(FLOOD_WINDOW_MS);
    expect(lines.length).toBe(2);
  });

  it("summarizes a flood, for each code separately", () => {
    for (let i = 0; i < 10_000; i++) fail("queue_full", `r-${i}`);
    fail("queue_timeout", "other");
    expect(lines.length).toBe(FLOOD_LINES_MAX + 1);
    vi.advanceTimersByTime(FLOOD_WINDOW_MS);
    expect(lines.at(-1)).toMatchObject({
      code: "queue_full",
      more: 10_000 - FLOOD_LINES_MAX,
      request_id: "r-9999",
    });
    fail("queue_full", "later");
    expect(lines.at(-1)).toMatchObject({ request_id: "later" });
    expect(lines.at(-1)!.more).toBeUndefined();
  });
});
