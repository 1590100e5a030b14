/** What strangers and user code write goes into the audit, the logs and the terminal: bounded, and without effect. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ECHO, project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

describe("text of others", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO));
  });
  afterAll(() => server.stop());

  const filesOfLogs = () =>
    readdirSync(join(server.dataDir, "logs")).filter((name) => name.startsWith("audit"));
  const textOfAudit = (name: string) => readFileSync(join(server.dataDir, "logs", name), "utf8");

  it("does not fill the audit: a flood of long paths without a key is cut and counted", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 20 });
    const path = `/-/${"a".repeat(12_000)}`;
    const refuse = () =>
      new Promise<number>((resolve, reject) =>
        request(server.baseUrl + path, { method: "DELETE", agent }, (answer) => {
          answer.resume().once("end", () => resolve(answer.statusCode!));
        })
          .once("error", reject)
          .end(),
      );
    const statuses = await Promise.all(Array.from({ length: 1_500 }, refuse));
    agent.destroy();
    expect(new Set(statuses)).toEqual(new Set([401]));
    const bytes = filesOfLogs().reduce(
      (sum, name) => sum + statSync(join(server.dataDir, "logs", name)).size,
      0,
    );
    // 1,500 lines would be 18 MB. A slow machine may need several windows of 20 lines.
    expect(bytes).toBeLessThan(500_000);
    expect(textOfAudit("audit-refused.log")).toContain("… (12003 characters)");
    expect(textOfAudit("audit.log")).not.toContain("aaaa");
  });

  it("is in `quern audit`, beside what was done with keys", () => {
    const created = JSON.parse(server.cli(["keys", "create", "--scope", "admin", "-o", "json"]).out) as {
      id: string;
    };
    server.cli(["keys", "revoke", created.id]);
    const all = server.cli(["audit", "--since", "1h"]);
    expect(all.code).toBe(0);
    expect(all.out).toMatch(/Z admin-token POST \/-\/deploy 200\n/);
    expect(all.out).toMatch(/Z - DELETE \/-\/a{200,}… \(12003 characters\) 401\n/);
    expect(all.out).toMatch(new RegExp(`Z admin-token DELETE /-/keys/${created.id} 200\n`));
    const lines = server.cli(["audit", "--key", "admin-token", "-o", "json"]).out.trim().split("\n");
    expect(new Set(lines.map((line) => (JSON.parse(line) as { by: string }).by))).toEqual(
      new Set(["admin-token"]),
    );
    expect(server.cli(["audit", "--key", "nobody"])).toMatchObject({ code: 0, out: "" });
    expect(server.cli(["audit", "--since", "yesterday"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("since must be a duration such as 1h"),
    });
  });
});
