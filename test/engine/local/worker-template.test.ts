/** What a template does not do: keep a start waiting for ever, or keep an end to itself when it is gone. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WorkerTemplate } from "../../../src/engine/local/worker-template.ts";
import { eventually } from "../../harness/eventually.ts";
import { root } from "../../harness/server.ts";

describe.runIf(process.platform === "linux")("a template of workers", () => {
  let directory: string;
  let template: WorkerTemplate;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-template-"));
    const command = { python: "python3", env: { PATH: process.env.PATH! } };
    const options = { runtimeDir: directory, pythonRuntime: join(root, "python"), silentMaxMs: 500 };
    template = new WorkerTemplate(command, options);
  });
  afterEach(async () => {
    template.end();
    await template.ended;
    rmSync(directory, { recursive: true });
  });

  let count = 0;
  function fork() {
    const note = join(directory, `${count++}.note`);
    writeFileSync(note, Buffer.alloc(4096));
    return template.fork({
      arguments: ["--listen", `unix:${note}.sock`, "--note", note],
      environment: { QUERN_WORKER_LOG: `${note}.log`, QUERN_WORKER_TOKEN: "t" },
    });
  }
  async function forked() {
    let started: Awaited<ReturnType<typeof fork>>;
    await eventually("it is ready", async () => {
      started = await fork();
      return started !== undefined;
    });
    return started!;
  }

  it("says how its workers end", async () => {
    const { pid, exited } = await forked();
    process.kill(pid, "SIGKILL");
    expect(await exited).toEqual({ signal: "SIGKILL" });
  });

  it("is killed if it is silent, and starts nothing then", async () => {
    const { pid, exited } = await forked();
    process.kill(template.pid!, "SIGSTOP");
    expect(await fork()).toBeUndefined();
    expect(await fork()).toBeUndefined();
    process.kill(pid, "SIGKILL");
    expect(await exited).toEqual({});
  });

  it("starts nothing if it cannot start itself", async () => {
    const options = { runtimeDir: directory, pythonRuntime: join(root, "python"), silentMaxMs: 500 };
    const none = new WorkerTemplate({ python: join(directory, "none"), env: {} }, options);
    await none.ended;
    expect(await none.fork({ arguments: [], environment: {} })).toBeUndefined();
    none.end();
  });

  it("is not begun while no more files can be opened, and fails nothing", () => {
    const program = `
      import { openSync } from "node:fs";
      import { WorkerTemplates } from ${JSON.stringify(join(root, "dist/engine/local/worker-templates.js"))};
      const watched = { add() {}, remove() {} };
      const templates = new WorkerTemplates({ runtimeDir: "/", pythonRuntime: "/", silentMaxMs: 1 }, watched);
      try { for (;;) openSync("/dev/null", "r"); } catch {}
      const command = { python: "python3", env: {} };
      const started = [];
      for (let n = 0; n < 3; n++) started.push(await templates.start(command, { arguments: [], environment: {} }));
      console.log(JSON.stringify(started));
    `;
    const shell = `ulimit -n 100; exec "$0" --input-type=module -e "$1"`;
    const out = execFileSync("sh", ["-c", shell, process.execPath, program], { encoding: "utf8" });
    expect(JSON.parse(out)).toEqual([null, null, null]);
  });
});
