/** `quern dev` as an author of a predictor uses it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { programOf } from "../../../src/base/process-identity.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { applicationServer, IrisExample, SETOSA } from "../../harness/iris-example.ts";
import { root, TestServer } from "../../harness/server.ts";

const predictor = (word: string) =>
  `class PythonPredictor:\n    def __init__(self, config): print("made ${word}")\n    def predict(self, payload):\n        print("asked", payload)\n        return "${word}"\n`;

class Dev {
  readonly process: ChildProcess;
  out = "";
  err = "";

  constructor(directory: string, env: NodeJS.ProcessEnv) {
    this.process = spawn(process.execPath, [join(root, "bin", "quern"), "dev", directory], {
      env: { ...process.env, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.process.stdout!.on("data", (text) => (this.out += String(text)));
    this.process.stderr!.on("data", (text) => (this.err += String(text)));
  }

  async end(): Promise<number | null> {
    const gone = new Promise<number | null>((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGINT");
    return gone;
  }
}

describe("quern dev", () => {
  let server: TestServer;
  let running: Dev | undefined;
  afterEach(async () => {
    if (running !== undefined && running.process.exitCode === null) await running.end();
    await server.stop();
  });
  const project = (word: string) => {
    const directory = join(server.dir, "work");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "quern.yaml"), "- name: hello\n  predictor: {path: p.py}\n");
    writeFileSync(join(directory, "p.py"), predictor(word));
    return directory;
  };
  const settings = () => ({
    QUERN_DATA_DIR: server.dataDir,
    XDG_CONFIG_HOME: join(server.dir, "config"),
    QUERN_HOST: undefined,
  });
  const ask = async () => (await (await server.post("/hello", 1, { connection: "close" })).json()) as unknown;

  it("answers with new code within moments, keeps the last good version, and shows the logs", async () => {
    server = new TestServer();
    await server.start();
    const directory = project("one");
    running = new Dev(directory, settings());
    const dev = running;
    await eventually(
      "it is live",
      () => dev.err.includes("hello is live at"),
      20_000,
      () => dev.err,
    );
    expect(await ask()).toBe("one");
    await eventually(
      "the log is shown",
      () => dev.out.includes("hello | made one") && dev.out.includes("hello | asked 1"),
    );

    const tookMs: number[] = [];
    for (const word of ["two", "three", "four"]) {
      // As editors do: another file takes its place.
      writeFileSync(join(directory, ".p.py.new"), predictor(word));
      renameSync(join(directory, ".p.py.new"), join(directory, "p.py"));
      const started = performance.now();
      await eventually("the new code answers", async () => (await ask()) === word);
      tookMs.push(performance.now() - started);
    }
    // Half a second on a quiet machine. A user who waits for a change would notice a build or an installation.
    expect(Math.min(...tookMs)).toBeLessThan(5_000);
    expect(dev.err).toContain("p.py changed\n");

    writeFileSync(join(directory, "p.py"), "def broken(:\n");
    await eventually("the mistake is told", () => dev.err.includes("syntax error"));
    expect(await ask()).toBe("four");
    writeFileSync(
      join(directory, "p.py"),
      predictor("five").replace("print(", "raise ValueError('no model') or print("),
    );
    await eventually("the failure is told", () => dev.err.includes("no model"));
    expect(await ask()).toBe("four");
    expect(dev.err).toContain("the last version that worked keeps running");
    rmSync(join(directory, "quern.yaml"));
    await eventually("the missing file is told", () => dev.err.includes("does not exist"));
    project("six");
    await eventually("it is cured", async () => (await ask()) === "six");
    expect(await dev.end()).toBe(0);
    // The server was not its own.
    expect((await server.fetch("/-/livez")).status).toBe(200);
  }, 60_000);

  it("starts a server if none runs, and stops it", async () => {
    server = new TestServer();
    const directory = project("alone");
    const port = await freePort();
    running = new Dev(directory, {
      ...settings(),
      QUERN_LISTEN: `127.0.0.1:${port}`,
      QUERN_HOST: `http://127.0.0.1:${port}`,
    });
    const dev = running;
    await eventually(
      "it is live",
      () => dev.err.includes("hello is live at"),
      60_000,
      () => dev.err,
    );
    expect(dev.err).toContain("started a server, which ends with this command");
    const response = await fetch(`http://127.0.0.1:${port}/hello`, {
      method: "POST",
      body: "1",
      headers: { "content-type": "application/json", connection: "close" },
    });
    expect(await response.json()).toBe("alone");
    expect(await dev.end()).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}/-/livez`)).rejects.toThrow();
    expect(readFileSync(join(server.dataDir, "admin-token"), "utf8").length).toBeGreaterThan(10);
  }, 120_000);

  it.each(["SIGHUP", "SIGKILL"] as const)(
    "does not leave its server behind after %s",
    async (signal) => {
      server = new TestServer();
      const directory = project("left");
      const listen = `127.0.0.1:${await freePort()}`;
      running = new Dev(directory, { ...settings(), QUERN_LISTEN: listen, QUERN_HOST: `http://${listen}` });
      const dev = running;
      const error = () => dev.err;
      await eventually("it is live", () => dev.err.includes("hello is live at"), 60_000, error);
      running = undefined;
      dev.process.kill(signal);
      await eventually("the server has ended", async () =>
        fetch(`http://${listen}/-/livez`).then(
          () => false,
          () => true,
        ),
      );
      await eventually("nothing of it runs", () => server.workers().length === 0);
    },
    120_000,
  );

  it("does not leave its server behind if it is killed while that starts", async () => {
    server = new TestServer();
    const settingsOfServer = { ...process.env, ...settings(), QUERN_LISTEN: `127.0.0.1:${await freePort()}` };
    const program = `
      const { spawn } = require("node:child_process");
      const options = { stdio: ["ignore", "ignore", "ignore", "ipc"], detached: true };
      const server = spawn(process.execPath, [${JSON.stringify(join(root, "bin", "quern"))}, "up"], options);
      server.send("end with me", () => {});
      process.stdout.write(String(server.pid));
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);`;
    const starter = spawn(process.execPath, ["-e", program], {
      env: settingsOfServer,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let pid = "";
    starter.stdout.on("data", (text) => (pid += String(text)));
    await new Promise((resolve) => starter.once("exit", resolve));
    await eventually(
      "the server has ended",
      () => programOf(Number(pid)) === undefined || programOf(Number(pid)) === "",
      20_000,
    );
  }, 60_000);

  it("ends at once while a deployment is in progress", async () => {
    server = new TestServer();
    await server.start();
    const directory = project("slow");
    writeFileSync(
      join(directory, "p.py"),
      predictor("slow").replace("print(", "__import__('time').sleep(60) or print("),
    );
    running = new Dev(directory, settings());
    const dev = running;
    await eventually("it deploys", async () => "api_id" in (await server.api("hello")));
    const startedMs = performance.now();
    expect(await dev.end()).toBe(0);
    expect(performance.now() - startedMs).toBeLessThan(20_000);
  }, 60_000);

  it("deploys a change although the version before it does not end its start", async () => {
    server = new TestServer();
    await server.start();
    const directory = project("slow");
    const hangs = predictor("slow").replace("print(", "__import__('time').sleep(600) or print(");
    writeFileSync(join(directory, "p.py"), hangs);
    running = new Dev(directory, settings());
    await eventually("it deploys", async () => "api_id" in (await server.api("hello")));
    writeFileSync(join(directory, "p.py"), hangs.replace("slow", "also slow"));
    await eventually("the change is seen", () => running!.err.includes("p.py changed"));
    project("quick");
    await eventually("the new code answers", async () => (await ask()) === "quick");
    await eventually("it is told", () => running!.err.includes("hello is live at"));
  }, 60_000);

  it("goes on if a file that it found is not there when it reads it", async () => {
    server = new TestServer();
    await server.start();
    const directory = project("one");
    // Node decodes the name, and then finds no such file: as if it had gone meanwhile.
    const vanishing = Buffer.concat([Buffer.from(`${directory}/gone-`), Buffer.from([0xff])]);
    writeFileSync(vanishing, "");
    running = new Dev(directory, settings());
    const dev = running;
    await eventually(
      "it is told",
      () => dev.err.includes("ENOENT"),
      20_000,
      () => dev.err,
    );
    rmSync(vanishing);
    await eventually("it is deployed without the file", async () => (await ask().catch(() => "")) === "one");
    expect(dev.process.exitCode).toBe(null);
  }, 60_000);

  it("reports errors in the configuration before it starts anything", async () => {
    server = new TestServer();
    const dev = new Dev(join(server.dir, "nowhere"), settings());
    const code = await new Promise((resolve) => dev.process.once("exit", resolve));
    expect([code, dev.err]).toEqual([2, expect.stringContaining("does not exist")]);
    expect(existsSync(server.dataDir)).toBe(false);
  });

  it("trains an application again after each change, and keeps the last working model", async () => {
    server = applicationServer();
    await server.start();
    const iris = new IrisExample(server);
    iris.write();
    running = new Dev(iris.directory, settings());
    const dev = running;
    const said = (text: RegExp) =>
      eventually(
        String(text),
        () => text.test(dev.err),
        60_000,
        () => dev.err,
      );
    await said(/iris\.iris-type is live at \S+\/iris\/iris-type/);
    const predict = async () => (await server.post("/iris/iris-type", SETOSA)).status;
    expect(await predict()).toBe(200);
    const file = join(iris.directory, "implementations", "models", "dnn.py");
    const code = readFileSync(file, "utf8");
    writeFileSync(file, code.replace("lbfgs", "no-such"));
    await said(
      /The 'solver' parameter of MLPClassifier must be .*\n.*\nthe last version that worked keeps running/,
    );
    expect(await predict()).toBe(200);
    dev.err = "";
    writeFileSync(file, code.replace("lbfgs", "adam"));
    await said(/iris\.iris-type is live at/);
    expect(await predict()).toBe(200);
  }, 180_000);
});
