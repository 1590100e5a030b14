/** A pod's launcher (docs/pods.md), as a plain process: real Python, real TLS, a real worker. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EnvironmentError } from "../../src/engine/environments/environment-error.ts";
import { preparationError } from "../../src/engine/environments/step-failed.ts";
import { MESSAGE } from "../../src/protocol/messages.ts";
import { eventually } from "../harness/eventually.ts";
import { LaunchedPod, ProjectServer } from "../harness/launched-pod.ts";
import { PredictingCaller, WORKER_TOKEN } from "../harness/started-worker.ts";

const ECHO = `
import os, signal, subprocess, time
class PythonPredictor:
    def __init__(self, config):
        print("made in", os.getcwd())
    def predict(self, payload):
        if payload == "die":
            print("about to die", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if payload == "slow":
            time.sleep(1.5)
        if payload == "orphan":
            # It is left to the first process of the container, and ends there.
            return subprocess.check_output(["sh", "-c", "sleep 0.1 & echo $!"], stdin=subprocess.DEVNULL, text=True)
        if payload == "variables":
            return {name: value for name, value in os.environ.items() if name.startswith(("QUERN", "FROM", "OWN"))}
        return payload
`;

let projects: ProjectServer;
const pods: LaunchedPod[] = [];
beforeEach(async () => {
  projects = await ProjectServer.start();
});
afterEach(async () => {
  for (const pod of pods.splice(0)) await pod.stop();
  projects.stop();
});

async function launch(files: Record<string, string>, variables: Record<string, string> = {}, cache?: string) {
  const pod = await LaunchedPod.start(projects.url(await projects.add(files)), variables, cache);
  pods.push(pod);
  return pod;
}

const INIT = { api_id: "v1", project: "/elsewhere", path: "predictor.py", api_config: "{}", concurrency: 4 };

/** What the controller does once the pod starts its worker. */
async function initialized(pod: LaunchedPod): Promise<PredictingCaller> {
  let controller: PredictingCaller | undefined;
  await eventually("the worker answers", async () => {
    controller = await PredictingCaller.open(pod.address, "controller").catch(() => undefined);
    return controller !== undefined;
  });
  controller!.connection.sendJson(MESSAGE.INIT, 0, {
    ...INIT,
    expose_errors: false,
    pass_credentials: false,
  });
  return controller!;
}

async function ready(pod: LaunchedPod): Promise<PredictingCaller> {
  const controller = await initialized(pod);
  await pod.untilReadiness(/^200/);
  return controller;
}

const predicted = async (caller: PredictingCaller, payload: unknown) =>
  JSON.parse(String(await caller.predict(Buffer.from(JSON.stringify(payload))))) as unknown;

describe("a pod's launcher", () => {
  it("fetches the project, starts the worker, and is ready once the class is loaded", async () => {
    projects.faults.push("503", "cut", "redirect");
    const pod = await launch(
      { "predictor.py": ECHO, ".env": "FROM_DOT_ENV='a b'\n" },
      { OWN: "1", QUERN_X: "2" },
    );
    await pod.untilReadiness(/^503 starting/);
    expect((await pod.get("/livez")).status).toBe(200);
    const controller = await ready(pod);
    expect(await predicted(controller, [1, "é"])).toEqual([1, "é"]);
    expect(await predicted(controller, "variables")).toEqual({ FROM_DOT_ENV: "a b", OWN: "1" });
    expect(projects.requests).toBe(4);
    expect(pod.output).toMatch(/503.*\n[\s\S]*failed: the server answers 302/);
    expect(pod.output).toMatch(/^\S+Z made in \S+\/cache\/projects\/[0-9a-f]{24}$/m);
    expect(await pod.facts()).toMatchObject({ state: "ready", starts: 1, last_exit: null });
  });

  it("tells about the worker only to who has the token", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    await pod.untilReadiness(/^503/);
    expect((await pod.get("/worker")).status).toBe(401);
    expect((await pod.get("/worker", { authorization: "Bearer f00" })).status).toBe(401);
    expect((await pod.get("/other")).status).toBe(404);
    const silent = Array.from({ length: 100 }, () =>
      connect(pod.healthPort, "127.0.0.1").on("error", () => {}),
    );
    expect((await pod.get("/livez")).status).toBe(200);
    await eventually("silent connections are closed", () => silent.every((socket) => socket.closed), 20_000);
  });

  it("starts a worker again that died, and tells how it died with what in hand", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    const controller = await ready(pod);
    const begun = performance.now();
    await expect(controller.predict(Buffer.from('"die"'))).rejects.toThrow("the connection ended");
    const again = await ready(pod);
    // The new Python takes most of it; the pause is none.
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(await predicted(again, 7)).toBe(7);
    const { starts, last_exit } = await pod.facts();
    expect(starts).toBe(2);
    expect(last_exit).toMatchObject({ signal: "SIGKILL", note: { busy: true, delivery: 1 } });
    expect(last_exit!.last_lines.at(-1)).toMatch(/Z about to die$/);
    expect(last_exit!.peak_memory_bytes).toBeGreaterThan(5_000_000);
  });

  it("ends its worker for who has the token and names its process, and no other process", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    const controller = await ready(pod);
    const { pid } = await pod.facts();
    const end = (
      query: string,
      headers: Record<string, string> = { authorization: `Bearer ${WORKER_TOKEN}` },
    ) => pod.get(`/worker?${query}`, headers, "DELETE");
    const answer = async (query: string) => (await end(query)).text();
    expect((await end(`pid=${pid}`, {})).status).toBe(401);
    expect((await end("pid=x")).status).toBe(400);
    expect((await end(`pid=${pid}&signal=SIGINT`)).status).toBe(400);
    expect(await answer(`pid=${pid! + 1}`)).toBe('{"signalled": false}');
    expect(await predicted(controller, 7)).toBe(7);
    expect(await answer(`pid=${pid}&signal=SIGTERM`)).toBe('{"signalled": true}');
    await eventually("another worker runs", async () => (await pod.facts()).starts === 2);
    expect((await pod.facts()).last_exit).toMatchObject({ code: 0, note: { busy: false } });
  });

  it("says why __init__ failed, and tries again when the controller does", async () => {
    const pod = await launch({
      "predictor.py":
        "import os\nclass PythonPredictor:\n  def __init__(self, config):\n    if not os.path.exists('there'): raise OSError('no model')\n  def predict(self, payload): return 1\n",
    });
    await initialized(pod);
    await pod.untilReadiness(/^503 failed: init failed: OSError: no model/);
    const [id] = projects.archives.keys();
    writeFileSync(join(pod.cache, "projects", id!, "there"), "");
    await eventually("the worker is started again", async () => (await pod.facts()).starts >= 2);
    expect(await predicted(await ready(pod), 0)).toBe(1);
  });

  it("drains on SIGTERM: not ready at once, the prediction in hand ends, then all ends", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    const controller = await ready(pod);
    const slow = predicted(controller, "slow");
    await eventually("it predicts", async () => (await pod.facts()).note?.busy === true);
    pod.process.kill("SIGTERM");
    await pod.untilReadiness(/^503 draining/);
    expect(await slow).toBe("slow");
    await eventually("the launcher has ended", () => pod.process.exitCode === 0);
    expect(controller.isClosed).toBe(true);
  });

  it("ends within its grace, although predict() does not", async () => {
    const endless =
      "import time\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload):\n    time.sleep(600)\n";
    const pod = await launch({ "predictor.py": endless }, { QUERN_GRACE: "3" });
    const controller = await ready(pod);
    const lost = expect(controller.predict(Buffer.from("1"))).rejects.toThrow("the connection ended");
    await eventually("it predicts", async () => (await pod.facts()).note?.busy === true);
    const begun = performance.now();
    pod.process.kill("SIGTERM");
    await eventually("the launcher has ended", () => pod.process.exitCode === 0, 15_000);
    expect(performance.now() - begun).toBeGreaterThan(1_500);
    await lost;
  });

  it("reaps what user code left behind", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    const controller = await ready(pod);
    const orphan = Number(await predicted(controller, "orphan"));
    expect(orphan).toBeGreaterThan(1);
    await eventually("no zombie is left", () => !existsSync(`/proc/${orphan}`));
  });

  it("knows after a start in the same pod what the worker before it had in hand", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    const controller = await ready(pod);
    const lost = expect(controller.predict(Buffer.from('"slow"'))).rejects.toThrow("the connection ended");
    await eventually("it predicts", async () => (await pod.facts()).note?.busy === true);
    const { pid } = await pod.facts();
    pod.process.kill("SIGKILL");
    process.kill(pid!, "SIGKILL");
    await lost;
    await eventually("the launcher is gone", () => pod.process.signalCode !== null);
    pod.run();
    await pod.untilReadiness(/^503 starting/);
    expect(await pod.facts()).toMatchObject({
      last_exit: { with_container: true, note: { busy: true, delivery: 1 } },
    });
  });

  it("ends its worker if it is killed itself", async () => {
    const pod = await launch({ "predictor.py": ECHO });
    await ready(pod);
    const { pid } = await pod.facts();
    pod.process.kill("SIGKILL");
    await eventually("the worker has ended", () => !existsSync(`/proc/${pid}`), 20_000);
  });

  it("shares projects and environments with the other pods of a node, and repairs changed files", async () => {
    const files = {
      "predictor.py": `import made_here\n${ECHO}`,
      "dependencies.sh":
        'echo installing\necho "def f(): pass" > "$(python -c "import sysconfig;print(sysconfig.get_paths()[\'purelib\'])")/made_here.py"\n',
    };
    const first = await launch(files);
    const second = await launch(files, {}, first.cache);
    await Promise.all([ready(first), ready(second)]);
    const environments = readdirSync(join(first.cache, "environments")).filter((name) => !name.includes("."));
    expect(environments).toHaveLength(1);
    expect(`${first.output}${second.output}`.match(/^installing$/gm)).toHaveLength(1);
    expect(projects.requests).toBe(1);
    const [id] = projects.archives.keys();
    const changed = join(first.cache, "projects", id!, "predictor.py");
    writeFileSync(changed, "broken");
    const third = await launch(files, {}, first.cache);
    await ready(third);
    expect(readFileSync(changed, "utf8")).toBe(files["predictor.py"]);
  });

  it("says why an installation failed", async () => {
    const pod = await launch({
      "predictor.py": ECHO,
      "dependencies.sh": "echo no such library at https://me:secret@x >&2\nexit 3\n",
    });
    await pod.untilReadiness(/^503 failed: dependencies.sh failed:\nno such library at https:/);
    expect(pod.output).toContain("no such library at https://***@x");
    expect(pod.output).not.toContain("secret");
    expect((await pod.facts()).failure).toEqual({
      message: "dependencies.sh failed:\nno such library at https://***@x",
      ...{ is_final: true, is_of_environment: true, step: "dependencies.sh" },
      ...{ output: ["no such library at https://***@x"], python: expect.stringMatching(/^3\.\d+$/) },
      for_s: expect.any(Number),
    });
  });

  it("keeps why it failed until it succeeds, and knows which failure may pass", async () => {
    projects.faults.push("503", "503");
    const pod = await launch({ "predictor.py": ECHO });
    await eventually("it has failed", async () => (await pod.facts().catch(() => null))?.failure != null);
    const { failure } = await pod.facts();
    expect(failure).toMatchObject({ is_final: false, is_of_environment: false, output: [] });
    await pod.untilReadiness(/^503 starting/);
    expect((await pod.facts()).failure).toBeNull();
    const gone = await LaunchedPod.start(projects.url("0".repeat(24)));
    pods.push(gone);
    await eventually("it has failed", async () => (await gone.facts().catch(() => null))?.failure != null);
    const { message, is_final } = (await gone.facts()).failure!;
    expect([is_final, message]).toEqual([true, expect.stringContaining("deploy it again")]);
  });

  it("tells as the server does why a requirement cannot be installed", async () => {
    const requirements = "--no-index\nnowhere-at-all==1\n";
    const pod = await launch({ "predictor.py": ECHO, "requirements.txt": requirements });
    await pod.untilReadiness(/^503 failed: requirements.txt failed/);
    const error = preparationError((await pod.facts()).failure!);
    expect(error).toBeInstanceOf(EnvironmentError);
    expect(error.message).toMatch(
      /^requirements.txt failed: there is no nowhere-at-all==1 for Python 3\.\d+; require another version[^\n]*\n/,
    );
  });

  it("refuses settings that cannot work, and says what to do", async () => {
    const bad = [
      [{ QUERN_PROJECT_URL: "ftp://x" }, "set it to the http or https address of a project"],
      [{ QUERN_LISTEN: "8421" }, "set it to HOST:PORT"],
      [{ QUERN_SECRETS: "/nowhere", QUERN_LISTEN: "0.0.0.0:1" }, "mount the pod's Secret"],
    ] as const;
    for (const [variables, words] of bad) {
      const pod = await launch({ "predictor.py": ECHO }, variables);
      await eventually("it has ended", () => pod.process.exitCode === 78);
      expect(pod.output).toContain(words);
    }
  });
});
