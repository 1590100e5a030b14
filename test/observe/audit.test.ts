import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  AUDIT_FILE_BYTES_MAX,
  AUDIT_FILES_MAX,
  AUDIT_POLL_MS,
  AUDIT_REFUSED_FILE_BYTES_MAX,
  FLOOD_LINES_MAX,
  FLOOD_WINDOW_MS,
} from "../../src/contracts/limits/logs.ts";
import { Audit } from "../../src/observe/audit.ts";
import { readAudit } from "../../src/observe/read-audit.ts";

const line = {
  ...{ method: "POST", path: "/-/keys", by: "k-1" as string | null, status: 200, request_id: "r" },
  scope: "admin",
};

describe("the audit", () => {
  let directory = "";
  let audit: Audit;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "quern-audit-"));
    audit = new Audit(directory);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(directory, { recursive: true });
  });
  const lines = async (query: Partial<Parameters<typeof readAudit>[1]> = {}) => {
    const found: Record<string, unknown>[] = [];
    for await (const texts of readAudit(directory, { since: "", key: undefined, follow: false, ...query }))
      found.push(...texts.map((text) => JSON.parse(text) as Record<string, unknown>));
    return found;
  };

  it("truncates what clients send, and escapes control sequences", async () => {
    audit.record({ ...line, path: `/-/${"a".repeat(16_000)}`, by: `jwt:${"b".repeat(9_000)}\u202e\x9b` });
    const text = readFileSync(join(directory, "audit.log"), "utf8");
    expect(text.length).toBeLessThan(1_000);
    expect(text).toContain("… (16003 characters)");
    audit.record({ ...line, by: "jwt:\u202e\x9b2J" });
    expect(readFileSync(join(directory, "audit.log"), "utf8")).toContain('"by":"jwt:\\u202e\\u009b2J"');
    expect((await lines())[1]).toMatchObject({ by: "jwt:\u202e\x9b2J" });
  });

  it("hides a key that is given instead of its id, and records what was created", async () => {
    audit.record({ ...line, path: `/-/keys/quern_${"a".repeat(32)}`, what: `k-2 (admin)${"x".repeat(999)}` });
    const [written] = await lines();
    expect(written!.path).toBe("/-/keys/quern_***");
    expect(written!.what).toMatch(/^k-2 \(admin\)x{1,256}… \(/);
  });

  it("keeps what is done with jobs apart, so that many submissions push out no other change", async () => {
    audit.record({ ...line, request_id: "key" });
    audit.record({
      ...line,
      path: "/jobs",
      request_id: "job",
      scope: "submit:jobs",
      client: "192.0.2.1",
      what: "j-1",
    });
    expect(readdirSync(directory).sort()).toEqual(["audit-jobs.log", "audit.log"]);
    const told = { scope: "submit:jobs", client: "192.0.2.1", what: "j-1" };
    expect(await lines()).toMatchObject([{ request_id: "key" }, { request_id: "job", ...told }]);
  });

  it("keeps apart what other keys do, so that none of them pushes out an admin's change", async () => {
    audit.record({ ...line, request_id: "key" });
    const weak = { ...line, by: "k-2", scope: "predict:echo submit:admin" };
    audit.record({ ...weak, method: "DELETE", path: "/-/session", request_id: "sign-out" });
    for (let i = 0; i < 1_000; i++) audit.record({ ...weak, path: "/-/selections/x/stop", status: 404 });
    audit.record({ ...line, by: "jwt:someone", scope: "", request_id: "no-scope" });
    expect(readFileSync(join(directory, "audit.log"), "utf8").split("\n")).toHaveLength(2);
    expect(await lines({ key: "k-2" })).toHaveLength(1 + FLOOD_LINES_MAX);
    expect((await lines()).map(({ request_id }) => request_id)).toContain("no-scope");
  });

  it("counts a flood of refusals for each key separately, but records every change", async () => {
    for (let i = 0; i < 1_000; i++) audit.record({ ...line, by: null, status: 401, request_id: `r-${i}` });
    audit.record({ ...line, by: "k-2", status: 403 });
    for (let i = 0; i < 100; i++) audit.record(line);
    expect((await lines({ key: "k-1" })).length).toBe(100);
    expect((await lines()).length).toBe(FLOOD_LINES_MAX + 1 + 100);
    vi.advanceTimersByTime(FLOOD_WINDOW_MS);
    const more = (await lines()).filter((each) => each.more !== undefined);
    expect(more).toMatchObject([{ by: null, more: 1_000 - FLOOD_LINES_MAX, request_id: "r-999" }]);
  });

  it("writes the remaining counts when it stops", async () => {
    for (let i = 0; i < 30; i++) audit.record({ ...line, by: null, status: 401 });
    await audit.stop();
    expect((await lines()).at(-1)).toMatchObject({ more: 30 - FLOOD_LINES_MAX });
  });

  it("is bounded: it is rotated, and readers lose none of the kept lines", async () => {
    const filler = `${JSON.stringify({ time: "2000-01-01T00:00:00.000000000Z", ...line })}\n`;
    const fill = (name: string, bytes: number) =>
      writeFileSync(join(directory, name), filler.repeat(Math.ceil(bytes / filler.length)));
    for (let i = 0; i < AUDIT_FILES_MAX + 2; i++) {
      fill("audit.log", AUDIT_FILE_BYTES_MAX);
      audit.record({ ...line, request_id: `new-${i}` });
    }
    fill("audit-refused.log", AUDIT_REFUSED_FILE_BYTES_MAX);
    audit.record({ ...line, by: null, status: 401, request_id: "refused" });
    expect(readdirSync(directory).sort()).toEqual([
      ...["audit-refused.log", "audit-refused.log.1", "audit.log"],
      ...["audit.log.1", "audit.log.2", "audit.log.3", "audit.log.4"],
    ]);
    const bytes = readdirSync(directory).reduce((sum, name) => sum + statSync(join(directory, name)).size, 0);
    expect(bytes).toBeLessThan(AUDIT_FILES_MAX * AUDIT_FILE_BYTES_MAX + 2 * AUDIT_REFUSED_FILE_BYTES_MAX);
    expect((await lines({ since: "2020" })).map(({ request_id }) => request_id)).toEqual([
      `new-${AUDIT_FILES_MAX + 1}`,
      "refused",
    ]);
  });

  it("is followed across a rotation", async () => {
    vi.useRealTimers();
    audit.record({ ...line, request_id: "first" });
    const seen: unknown[] = [];
    const following = readAudit(directory, { since: "", key: undefined, follow: true });
    const next = async () => {
      let value: string[] = [];
      while (value.length === 0) value = (await following.next()).value as string[];
      seen.push(...value.map((text) => (JSON.parse(text) as { request_id: string }).request_id));
    };
    await next();
    const filler = `${JSON.stringify({ time: "2000-01-01T00:00:00.000000000Z", ...line, by: "k-0" })}\n`;
    const file = join(directory, "audit.log");
    const flags = { flag: "a" };
    writeFileSync(file, filler.repeat(Math.ceil(AUDIT_FILE_BYTES_MAX / filler.length)), flags);
    audit.record({ ...line, request_id: "after" });
    while (!seen.includes("after")) await next();
    expect(seen[0]).toBe("first");
    expect(seen.filter((id) => id === "first" || id === "after")).toEqual(["first", "after"]);
    await following.return(undefined);
  });

  it("loses the line that a full disk truncated, but not the next one", async () => {
    const file = join(directory, "audit.log");
    writeFileSync(file, '{"time":"2000","by":"cut');
    audit.record({ ...line, request_id: "first" });
    audit.record({ ...line, request_id: "second" });
    expect((await lines()).map(({ request_id }) => request_id)).toEqual(["first", "second"]);
    expect(readFileSync(file, "utf8").split("\n").length).toBe(4);
  });

  it("continues the file of earlier releases", async () => {
    writeFileSync(join(directory, "audit.jsonl"), '{"time":"2000","by":"admin-token"}\n');
    await audit.start();
    audit.record(line);
    expect((await lines()).map(({ by }) => by)).toEqual(["admin-token", "k-1"]);
  });

  it("is no longer read soon after its reader has left, also if no line comes", async () => {
    const following = readAudit(directory, { since: "", key: undefined, follow: true });
    // As a response reads: it waits for lines when its client leaves.
    let isOver = false;
    const waiting = (async () => {
      while (!(await following.next()).done);
      isOver = true;
    })();
    await vi.advanceTimersByTimeAsync(3 * AUDIT_POLL_MS);
    expect(isOver).toBe(false);
    following.return(undefined).catch(() => {});
    await vi.advanceTimersByTimeAsync(3 * AUDIT_POLL_MS);
    expect(isOver).toBe(true);
    await waiting;
  });
});
