import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Access, AccessLog } from "../../src/observe/access-log.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-access-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const access = (requestId: string, more: Partial<Access> = {}): Access => ({
  request: { method: "POST" },
  requestId,
  route: { name: "api", api_id: "v1" },
  status: 200,
  tookMs: 1.23456,
  bytes: { request: 2, response: 100 },
  key: undefined,
  ...more,
});
const lines = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const ids = (file: string) => lines(file).map(({ request_id }) => request_id);

it("a line has what is known of a request, and 499 if its client left", async () => {
  const file = join(directory, "access.log");
  const log = new AccessLog(file);
  log.record(access("a"));
  log.record(access("b", { status: 0, key: "key-1" }));
  await log.flush();
  expect(lines(file)).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      request_id: "a",
      api: "api",
      api_id: "v1",
      method: "POST",
      status: 200,
      duration_ms: 1.235,
      request_bytes: 2,
      response_bytes: 100,
      key: null,
    },
    expect.objectContaining({ request_id: "b", status: 499, key: "key-1" }),
  ]);
});

it("two gateways rotate a file once, and lose no line", async () => {
  const file = join(directory, "access.log");
  const logs = [0, 1].map(() => new AccessLog(file, { fileBytesMax: 1_000 }));
  for (let turn = 0; turn < 3; turn++) {
    for (const [gateway, log] of logs.entries()) log.record(access(`${gateway}-${turn}`));
    await Promise.all(logs.map((log) => log.flush()));
  }
  // Each line has some 200 bytes: the file has all six, and is full.
  for (const [gateway, log] of logs.entries()) log.record(access(`${gateway}-after`));
  await Promise.all(logs.map((log) => log.flush()));
  expect(ids(`${file}.1`)).toHaveLength(6);
  expect(ids(file).sort()).toEqual(["0-after", "1-after"]);
  expect(existsSync(`${file}.rotating`)).toBe(false);
});

it("lines that find no place are counted, and the count is written once there is space", async () => {
  const file = join(directory, "logs", "access.log");
  const log = new AccessLog(file, { waitingBytesMax: 500 });
  log.record(access("lost"));
  await log.flush();
  for (let request = 0; request < 10; request++) log.record(access(String(request)));
  mkdirSync(join(directory, "logs"));
  await log.flush();
  const [first, ...rest] = lines(file);
  expect(rest.map(({ request_id }) => request_id)).toEqual(["0", "1", "2"]);
  expect(first!.dropped).toBe(1 + 7);
});

it("a flush ends after the writes before it, also if it has nothing to write", async () => {
  const file = join(directory, "access.log");
  const log = new AccessLog(file);
  log.record(access("a"));
  void log.flush();
  // The first write has begun, so the second one has a line of its own.
  await Promise.resolve().then(() => {});
  log.record(access("b"));
  void log.flush();
  await log.flush();
  expect(ids(file)).toEqual(["a", "b"]);
});
