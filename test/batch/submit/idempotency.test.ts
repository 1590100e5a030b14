/** Keys of submissions that have expired, in any number. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findSubmission, saveSubmission, submissionKey } from "../../../src/batch/submit/idempotency.ts";
import { EXPIRED_KEYS_AT_ONCE, IDEMPOTENCY_KEPT_MS } from "../../../src/contracts/limits/submissions.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

const NOW_MS = 10 * IDEMPOTENCY_KEPT_MS;
const EXPIRED = 3 * EXPIRED_KEYS_AT_ONCE + 50;

describe("expired keys of submissions", () => {
  let db: Database;
  beforeEach(async () => {
    db = openSqliteDatabase(":memory:");
    await migrate(db);
    await db.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${EXPIRED - 1})
       INSERT INTO idempotency_keys SELECT 'a', 'old-' || i, 'sha', 'job-' || i, i FROM n`,
    );
  });
  afterEach(() => db.close());

  const key = (text: string, body = "{}") => submissionKey("a", text, Buffer.from(body));
  const kept = async () => (await db.all("SELECT idempotency_key FROM idempotency_keys")).length;

  it("are deleted by the next submissions, a limited number by each", async () => {
    let expired = EXPIRED;
    for (let saved = 1; saved <= 5; saved++) {
      await saveSubmission(db, await key(`new-${saved}`), "job", NOW_MS);
      expired = Math.max(0, expired - EXPIRED_KEYS_AT_ONCE);
      expect(await kept()).toBe(saved + expired);
    }
    for (let saved = 1; saved <= 5; saved++)
      expect(await findSubmission(db, await key(`new-${saved}`), NOW_MS)).toBe("job");
  });

  it("can be used again while they are still there, for the same or another body", async () => {
    const last = await key(`old-${EXPIRED - 1}`, "other");
    expect(await findSubmission(db, last, NOW_MS)).toBeUndefined();
    await saveSubmission(db, last, "job-new", NOW_MS);
    expect(await findSubmission(db, last, NOW_MS)).toBe("job-new");
    expect(await kept()).toBe(EXPIRED - EXPIRED_KEYS_AT_ONCE);
  });

  it("are found by an index", async () => {
    const plan: string[] = [];
    const explain = async (sql: string, params: readonly (string | number | null | Uint8Array)[] = []) => {
      const rows = await db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params);
      plan.push(...rows.map(({ detail }) => detail));
      return 0;
    };
    await saveSubmission({ all: db.all.bind(db), run: explain }, await key("new"), "job", NOW_MS);
    expect(plan.filter((detail) => /SEARCH|SCAN/.test(detail)).join("\n")).toMatch(
      /^SEARCH idempotency_keys USING PRIMARY KEY .*\nSEARCH idempotency_keys USING COVERING INDEX idempotency_keys_by_age .*$/,
    );
  });
});
