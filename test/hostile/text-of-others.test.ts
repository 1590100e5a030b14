/** Text of unknown callers and user code in the audit, the logs and the terminal is bounded and harmless. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { project } from "../harness/projects.ts";
import { root, TestServer } from "../harness/server.ts";

/**
 * Clears the screen, sets the clipboard and the title, goes back in the line, does so by C1, turns the direction around,
 * hides characters.
 */
const HOSTILE =
  "\u001b[2J\u001b]52;c;cm0gLXJm\u0007\u009b31m\u009d0;title\u009c\rover\b\u007f\u202etxt.exe\u2066\u200b\ufeff\u{e0041}ad\u200dmin";
/** Characters allowed in the output of a command: no control or format characters except line ends and tabs. */
const OBEYED = /(?![\n\t])[\p{Cc}\p{Cf}]/u;
const HOSTILE_PREDICTOR = `
HOSTILE = ${JSON.stringify(HOSTILE)}
class PythonPredictor:
    def __init__(self, config):
        pass
    def predict(self, payload):
        if payload == "print":
            print("before " + HOSTILE + " after")
        if payload == "raise" or payload == ["raise"]:
            raise ValueError(HOSTILE + "\\nforged row")
        return HOSTILE
`;

describe("untrusted text", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(HOSTILE_PREDICTOR));
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

  it("is in `quern audit`, beside the actions with keys", async () => {
    const created = JSON.parse(server.cli(["keys", "create", "--scope", "admin", "-o", "json"]).out) as {
      id: string;
    };
    server.cli(["keys", "revoke", created.id]);
    const all = server.cli(["audit", "--since", "1h"]);
    expect(all.code).toBe(0);
    expect(all.out).toMatch(/Z admin-token 127\.0\.0\.1 POST \/-\/deploy 200\b.*echo/);
    expect(all.out).toMatch(/Z - 127\.0\.0\.1 DELETE \/-\/a{200,}… \(12003 characters\) 401\n/);
    const { id } = created;
    expect(all.out).toMatch(
      new RegExp(`Z admin-token 127.0.0.1 DELETE /-/keys/${id} 200 ${id} \\(admin\\)\n`),
    );
    const lines = server.cli(["audit", "--key", "admin-token", "-o", "json"]).out.trim().split("\n");
    expect(new Set(lines.map((line) => (JSON.parse(line) as { by: string }).by))).toEqual(
      new Set(["admin-token"]),
    );
    const following = server.startCli(["audit", "-f", "--key", "admin-token", "--since", "1h"]);
    await eventually("it has printed what there is", () => following.out.includes(created.id));
    server.cli(["refresh", "echo"]);
    await eventually("it prints what comes", () => following.out.includes("POST /-/apis/echo/refresh 200"));
    following.process.kill("SIGTERM");
    await following.ended;
    expect(server.cli(["audit", "--key", "nobody"])).toMatchObject({ code: 0, out: "" });
    expect(server.cli(["audit", "--since", "yesterday"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("since must be a duration such as 1h"),
    });
  });

  it("is escaped in printed logs, and exact as JSON", () => {
    expect(server.cli(["predict", "echo", "-"], { input: '"print"' }).code).toBe(0);
    const shown = server.cli(["logs", "echo"]);
    expect(shown.out).not.toMatch(OBEYED);
    expect(shown.out).toContain("before \\u001b[2J\\u001b]52;c;cm0gLXJm\\u0007\\u009b31m");
    expect(shown.out).toContain(
      "\\rover\\u0008\\u007f\\u202etxt.exe\\u2066\\u200b\\ufeff\\udb40\\udc41ad\\u200dmin after",
    );
    const records = server.cli(["logs", "echo", "-o", "json"]).out;
    expect(records).not.toMatch(OBEYED);
    const lines = records
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { line: string }).line);
    expect(lines).toContain(`before ${HOSTILE} after`);
  });

  it("is escaped in predictions, which stay the same JSON, and in errors", () => {
    const predicted = server.cli(["predict", "echo", "-"], { input: "1" });
    expect(predicted.out).not.toMatch(OBEYED);
    expect(JSON.parse(predicted.out)).toBe(HOSTILE);
    const failed = server.cli(["predict", "echo", "-"], { input: '"raise"' });
    expect(failed.code).toBe(1);
    expect(failed.err).not.toMatch(OBEYED);
  });

  it("stays inside its table cell", () => {
    const job = join(server.dir, "job.json");
    writeFileSync(job, JSON.stringify({ workers: 1, item_list: { items: ["raise"], batch_size: 1 } }));
    const id = server.cli(["job", "submit", "jobs", job]).out.trim();
    expect(server.cli(["job", "wait", "jobs", id]).code).toBe(11);
    const [head, row, ...rest] = server.cli(["job", "failures", "jobs", id]).out.split("\n");
    expect(head).toMatch(/^batch /);
    expect(row).toContain("ValueError: \\u001b[2J");
    expect(`${row}${rest.join("")}`).not.toMatch(OBEYED);
    expect(rest[0]).toBe("");
  });

  it("forges no line of a job's log: each file name stays on one line", () => {
    const name = "a\n2026-01-01T00:00:00.000Z the job ended: status_succeeded\u001b[2J\u202e.json";
    server.writeInput(name, "{not json\n");
    const delimited_files = { store_paths: [`file://${server.inputs}/`], batch_size: 1 };
    const job = { workers: 1, delimited_files };
    writeFileSync(join(server.dir, "job.json"), JSON.stringify(job));
    const shown = server.cli(["job", "submit", "jobs", join(server.dir, "job.json"), "--dry-run"]);
    expect(`${shown.out}${shown.err}`).toContain("status_succeeded");
    expect(`${shown.out}${shown.err}`).not.toMatch(OBEYED);
    const id = server.cli(["job", "submit", "jobs", join(server.dir, "job.json")]).out.trim();
    expect(server.cli(["job", "wait", "jobs", id]).code).toBe(10);
    const lines = server.cli(["job", "logs", "jobs", id]).out.trim().split("\n");
    const ends = lines.filter((line) => / server the job ended/.test(line));
    expect(ends).toEqual([expect.stringContaining("status_enqueue_failed")]);
    expect(lines.filter((line) => line.startsWith("2026-01-01T00:00:00"))).toEqual([]);
    expect(lines.join("\n")).not.toMatch(OBEYED);
  });

  it("is escaped in answers of other servers and in quoted arguments", async () => {
    const api = { name: `${HOSTILE}\nforged`, kind: "BatchAPI", status: HOSTILE, running_jobs: 0 };
    const answers = [
      { status: 500, body: HOSTILE },
      { status: 404, body: JSON.stringify({ title: HOSTILE, message: HOSTILE }) },
      {
        status: 400,
        body: JSON.stringify({ title: HOSTILE, errors: [{ pointer: HOSTILE, detail: HOSTILE }] }),
      },
      { status: 302, body: "" },
      { status: 200, body: JSON.stringify({ version: HOSTILE, apis: [api], applications: [] }) },
      { status: 200, body: '{"version": "1",\r\n"apis": [], "applications": []}' },
      { status: 200, body: HOSTILE },
    ];
    // The first segment of the path says which answer.
    const other = createServer(({ url }, response) => {
      const { status, body } = answers[Number(url!.split("/")[1])]!;
      response.statusCode = status;
      response.end(body);
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const asked = answers.flatMap((_, i) => [
      [i, "get"],
      ...(i < 4
        ? []
        : [
            [i, "get", "-o", "json"],
            [i, "version"],
            [i, "logs", "x"],
          ]),
    ]);
    const printed = await Promise.all(
      asked.map(([i, ...args]) => {
        const env = { QUERN_HOST: `http://127.0.0.1:${port}/${i}`, QUERN_API_KEY: "x" };
        return server.cliBeside(args as string[], env);
      }),
    );
    for (const [at, { out, err }] of printed.entries()) {
      expect(out + err, String(asked[at])).not.toMatch(OBEYED);
      expect(out + err, String(asked[at])).not.toMatch(/^forged/m);
      expect(out + err, String(asked[at])).not.toBe("");
    }
    other.close();
    const mistaken = server.cli([`verb${HOSTILE}`]);
    expect([mistaken.code, mistaken.err]).toEqual([2, expect.stringContaining("\\u001b[2J")]);
    expect(mistaken.err).not.toMatch(OBEYED);
  }, 180_000);

  it("is escaped on a terminal, where only Quern's progress bar moves the cursor", () => {
    const job = join(server.dir, "job.json");
    writeFileSync(job, JSON.stringify({ workers: 1, item_list: { items: ["print"], batch_size: 1 } }));
    const onTerminal = (args: string[], input = "") =>
      spawnSync(
        "python3",
        [
          "-c",
          "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)",
          process.execPath,
          join(root, "bin", "quern"),
          ...args,
        ],
        {
          env: {
            ...process.env,
            QUERN_HOST: undefined,
            QUERN_DATA_DIR: server.dataDir,
            NO_COLOR: undefined,
            CI: undefined,
            TERM: "xterm",
          },
          encoding: "utf8",
          input,
        },
      ).stdout;
    expect(server.cli(["predict", "echo", "-"], { input: '"print"' }).code).toBe(0);
    const logs = onTerminal(["logs", "echo"]).replaceAll("\r\n", "\n");
    expect(logs).toContain("\\u001b[2J");
    expect(logs).not.toMatch(OBEYED);
    const waited = onTerminal(["job", "submit", "jobs", job, "--wait"]).replaceAll("\r\n", "\n");
    expect(waited).toContain("\r\u001b[2K");
    expect(waited.replaceAll("\r\u001b[2K", "")).not.toMatch(OBEYED);
    expect(onTerminal(["delete", "echo"], "n\n")).toMatch(/\[y\/N\] .*error: nothing was changed/s);
    expect(onTerminal(["delete", "echo"], "y\n")).toContain("deleting echo");
  });
});
