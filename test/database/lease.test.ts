/** When a server that waits may take a database (src/database/postgres/lease.ts). */
import { describe, expect, it } from "vitest";
import { DATABASE_LEASE_MS, DATABASE_LOCK_FREE_MS } from "../../src/contracts/limits/database.ts";
import { judgeLease, type Lease } from "../../src/database/postgres/lease.ts";

const lease = (change: Partial<Lease> = {}): Lease => ({
  ...{ directory: "theirs", host: "h", place: "p", writer: "w", taken: "t", renewed: "r", age_ms: 0 },
  ...change,
});
const judge = (isLocked: boolean, found: Lease | undefined, sameForMs?: number) =>
  judgeLease({ lease: found, isLocked }, { directory: "ours", sameForMs });
const [FREE, SILENT] = [DATABASE_LOCK_FREE_MS, DATABASE_LEASE_MS];

describe("a server that waits for a database", () => {
  it.each([
    ["a command or an older release has it", true, undefined, "wait"],
    ["nobody has it", false, undefined, "take"],
  ] as const)("knows without a lease that %s", (_, isLocked, found, verdict) => {
    expect(judge(isLocked, found)).toBe(verdict);
    expect(judge(isLocked, found, 1e9)).toBe(verdict);
  });

  it("takes at once what a former process of its own data directory had, and ends that one's session", () => {
    expect(judge(true, lease({ directory: "ours" }))).toBe("end");
    expect(judge(false, lease({ directory: "ours" }))).toBe("take");
  });

  it("takes at once what was given up, when its holder has left", () => {
    const given = lease({ renewed: null, age_ms: null });
    expect(judge(true, given, 1e9)).toBe("wait");
    expect(judge(false, given)).toBe("take");
    expect(judge(false, given, 0)).toBe("take");
  });

  it("leaves it to a holder that renews its lease", () => {
    expect(judge(true, lease({ age_ms: 1 }))).toBe("wait");
    expect(judge(true, lease({ age_ms: 1 }), 1)).toBe("wait");
    expect(judge(true, lease({ age_ms: SILENT - 1 }), SILENT - 1)).toBe("wait");
  });

  it("takes it from a holder that has been silent for the time of the lease", () => {
    expect(judge(true, lease({ age_ms: SILENT }), SILENT)).toBe("end");
  });

  it("waits itself for the time of the lease: at its first look it knows only the database's clock", () => {
    expect(judge(true, lease({ age_ms: 1e9 }))).toBe("wait");
    expect(judge(true, lease({ age_ms: 1e9 }), SILENT - 1)).toBe("wait");
    expect(judge(true, lease({ age_ms: SILENT - 1 }), 1e9)).toBe("wait");
  });

  it("goes by its own clock if that of the database was set back", () => {
    expect(judge(true, lease({ age_ms: -1e9 }), SILENT - 1)).toBe("wait");
    expect(judge(true, lease({ age_ms: -1e9 }), SILENT)).toBe("end");
    expect(judge(false, lease({ age_ms: -1 }), FREE - 1)).toBe("wait");
    expect(judge(false, lease({ age_ms: -1 }), FREE)).toBe("take");
  });

  it("lets a holder connect again that has lost its connections", () => {
    expect(judge(false, lease({ age_ms: 1e9 }), FREE - 1)).toBe("wait");
    expect(judge(false, lease({ age_ms: FREE - 1 }), 1e9)).toBe("wait");
    expect(judge(false, lease({ age_ms: FREE }), FREE)).toBe("take");
  });

  it("starts at once if its holder was gone before", () => {
    expect(judge(false, lease({ age_ms: FREE - 1 }))).toBe("wait");
    expect(judge(false, lease({ age_ms: FREE }))).toBe("take");
  });
});
