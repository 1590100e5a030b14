/** Real-time APIs as Deployments of a real cluster: `quern up --engine kubernetes`. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { SteadyLoad } from "../harness/steady-load.ts";
import { EngineServer } from "./engine-server.ts";

const ECHO = (version: string) => `
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == "env":
            return {name: value for name, value in os.environ.items() if name.startswith(("QUERN", "OWN"))}
        if payload == "die":
            print("about to die", flush=True)
            os.kill(os.getpid(), 9)
        if payload == "memory":
            return len(b"x" * 400_000_000)
        time.sleep(0.02)
        return {"version": "${version}", "user": os.getuid(), "pod": os.uname()[1]}
`;
const CONNECTIONS = 4;
const ECHO_API = { name: "echo", autoscaling: { min_replicas: 2, max_replicas: 2 } };

let engine: EngineServer;
beforeAll(async () => {
  engine = await EngineServer.start("engine");
}, 120_000);
afterAll(() => engine?.stop(), 180_000);

/** So many pods serve the version, and no other version does. */
async function serves(api: string, version: string, pods: number): Promise<void> {
  let last: string[] = [];
  const isSo = async () => {
    last = await Promise.all(
      Array.from({ length: 2 * pods }, async () => (await engine.predict(api, {})).text()),
    );
    const answers = last.map((text) => JSON.parse(text) as { version?: string; pod?: string });
    return (
      answers.every((answer) => answer.version === version) &&
      new Set(answers.map(({ pod }) => pod)).size >= pods
    );
  };
  await eventually(`${pods} pods of ${api} serve ${version}`, isSo, 60_000, () => last.join("\n"));
}

const load = () => new SteadyLoad(`${engine.server.baseUrl}/echo`, CONNECTIONS);
const failuresOf = ({ answers }: SteadyLoad) =>
  answers.filter(({ status }) => status !== 200).map(({ status, body }) => `${status} ${body}`);
/** More answers have come than now. */
const goesOn = (running: SteadyLoad, more = 50) => {
  const before = running.answers.length;
  return eventually("the load goes on", () => running.answers.length > before + more, 60_000);
};

describe("a real-time API", () => {
  it("is a Deployment whose pods serve, as another user, with their own variables", async () => {
    const predictor = { path: "predictor.py", env: { OWN: "$(HOME) is $HOME" } };
    engine.deploy({ ...ECHO_API, predictor }, ECHO("1"));
    await serves("echo", "1", 2);
    expect(engine.pods("echo")).toHaveLength(2);
    const answer = (await (await engine.predict("echo", {})).json()) as Record<string, unknown>;
    expect(answer).toMatchObject({ version: "1", user: 1000 });
    expect(await (await engine.predict("echo", "env")).json()).toEqual({ OWN: "$(HOME) is $HOME" });
    expect(engine.server.cli(["get", "echo"]).out).toMatch(/live +2 +2 /);
    const { out } = engine.server.cli(["describe", "echo"]);
    for (const pod of engine.pods("echo")) expect(out).toContain(pod);
  });

  it("has the objects that a reviewer expects, and only those", () => {
    const all = engine.kubectl("get", "deploy,secret,pdb,networkpolicy", "-o", "name").split("\n");
    expect(all.filter((name) => !name.includes("configmap")).sort()).toEqual([
      "deployment.apps/quern-echo-api",
      "networkpolicy.networking.k8s.io/quern-workers",
      "poddisruptionbudget.policy/quern-echo-api",
      "secret/quern-authority",
      "secret/quern-echo-api",
    ]);
  });

  it("rolls out under load without a failed request", async () => {
    const running = load();
    await goesOn(running);
    engine.deploy(ECHO_API, ECHO("2"));
    await serves("echo", "2", 2);
    await eventually("old pods are gone", () => engine.pods("echo").length === 2, 60_000);
    await goesOn(running);
    await running.stop();
    expect(failuresOf(running)).toEqual([]);
    expect(running.answers.at(-1)!.body).toContain('"2"');
  });

  it("goes back to the version before without a failed request", async () => {
    const running = load();
    expect(engine.server.cli(["rollback", "echo"]).code).toBe(0);
    await serves("echo", "1", 2);
    await running.stop();
    expect(failuresOf(running)).toEqual([]);
  });

  it("loses no request if a pod is removed, and gets another one", async () => {
    const running = load();
    await goesOn(running);
    const [victim] = engine.pods("echo");
    engine.kubectl("delete", "pod", victim!, "--wait=false");
    await eventually(
      "another pod is there",
      () => engine.pods("echo").length === 2 && !engine.pods("echo").includes(victim!),
      60_000,
    );
    await serves("echo", "1", 2);
    await running.stop();
    expect(failuresOf(running)).toEqual([]);
  });

  it("loses only what ran in a worker that is killed, whose pod starts another one", async () => {
    const running = load();
    await goesOn(running);
    const before = engine.pods("echo");
    const response = await engine.predict("echo", "die");
    expect(response.status).toBe(502);
    await serves("echo", "1", 2);
    await goesOn(running);
    await running.stop();
    expect(engine.pods("echo")).toEqual(before);
    // What the gateway had sent to the worker that died, one of two.
    expect(failuresOf(running).length).toBeLessThanOrEqual(CONNECTIONS);
    for (const failure of failuresOf(running)) expect(failure).toMatch(/^502 /);
    await eventually("the log says how it ended", () => {
      const { out } = engine.server.cli(["logs", "echo"]);
      return /replica \S+ was killed by SIGKILL/.test(out) && out.includes("about to die");
    });
  });

  it("serves while its controller is killed, and its pods stay", async () => {
    const before = engine.pods("echo");
    const running = load();
    await goesOn(running);
    process.kill(engine.server.child("controller"), "SIGKILL");
    await goesOn(running, 200);
    await engine.untilApi("echo", /"status":"live"/);
    await goesOn(running, 200);
    await running.stop();
    expect(failuresOf(running)).toEqual([]);
    expect(engine.pods("echo")).toEqual(before);
  });

  it("takes back what somebody else has changed, and keeps a person's labels", async () => {
    engine.kubectl("label", "deployment", "quern-echo-api", "team=ml");
    engine.kubectl("scale", "deployment", "quern-echo-api", "--replicas=0");
    await serves("echo", "1", 2);
    expect(
      engine.kubectl("get", "deployment", "quern-echo-api", "-o", "jsonpath={.metadata.labels.team}"),
    ).toBe("ml");
    engine.kubectl("delete", "deployment", "quern-echo-api");
    await serves("echo", "1", 2);
  });
});

/** The pods of an API that its ReplicaSet has taken away. */
function takenAway(api: string): string[] {
  const found = engine.kubectl("get", "events", "--field-selector", "reason=SuccessfulDelete", "-o", "json");
  const { items } = JSON.parse(found) as { items: { message: string }[] };
  const pods = items.map(({ message }) => /^Deleted pod: (\S+)$/.exec(message)?.[1] ?? message);
  return pods.filter((pod) => pod.includes(`quern-${api}-`));
}

/** Pods of the API follow each other under load, and only worn ones go. */
async function wearsOut(name: string, limit: object): Promise<void> {
  const predictor = { path: "predictor.py", ...limit };
  const autoscaling = { min_replicas: 1, max_replicas: 1 };
  engine.deploy({ name, autoscaling, predictor }, ECHO("1"));
  const running = new SteadyLoad(`${engine.server.baseUrl}/${name}`, CONNECTIONS);
  const podsOf = () => new Set(running.answers.map(({ body }) => /"pod":"([^"]+)"/.exec(body)?.[1]));
  await eventually("three pods have served", () => podsOf().size >= 3, 120_000);
  await eventually("two pods have gone", () => takenAway(name).length >= 2, 60_000);
  await running.stop();
  expect(failuresOf(running)).toEqual([]);
  const gone = takenAway(name);
  const log = engine.server.cli(["logs", name]).out;
  const worn = [...log.matchAll(/replica (\S+) has reached max_requests or max_age/g)].map(([, pod]) => pod);
  expect(worn).toEqual(expect.arrayContaining(gone));
  await eventually("one pod is left", () => engine.pods(name).length === 1, 60_000);
  engine.server.cli(["delete", name, "--force"]);
}

it("replaces workers after max_requests without a failed request", () =>
  wearsOut("leaky", { max_requests: 300 }));

it("replaces workers after max_age, and never their successors", () => wearsOut("aging", { max_age: "10s" }));

it("has no pod while it sleeps, and a request that wakes it waits for the first one", async () => {
  const autoscaling = { min_replicas: 0, init_replicas: 0, max_replicas: 1 };
  engine.deploy({ name: "asleep", autoscaling }, ECHO("1"));
  expect(engine.pods("asleep")).toEqual([]);
  const response = await engine.predict("asleep", {});
  expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ version: "1" })]);
  expect(engine.pods("asleep")).toHaveLength(1);
});

it("runs where compute says, with the variables of its Secrets", async () => {
  const metadata = { name: "keys", namespace: engine.namespace };
  engine.apply({ apiVersion: "v1", kind: "Secret", metadata, stringData: { OWN_KEY: "secret" } });
  const placed = { node_selector: { "kubernetes.io/hostname": "n2" }, secrets: ["keys"] };
  engine.deploy({ name: "placed", compute: { cpu: "50m", ...placed } }, ECHO("1"));
  expect(await (await engine.predict("placed", "env")).json()).toEqual({ OWN_KEY: "secret" });
  const node = ["-o", "jsonpath={.items[*].spec.nodeName}"];
  expect(engine.kubectl("get", "pods", "-l", "quern.dev/api=placed", ...node)).toBe("n2");
});

describe("why an API does not serve", () => {
  const status = /"status":"(error|error \(out of memory\)|compute unavailable)"/;

  it("no node has a place for its pods", async () => {
    engine.deploy({ name: "large", compute: { cpu: "100" } }, ECHO("1"), { wait: false });
    const state = await engine.untilApi("large", status);
    expect(state).toMatch(/"compute unavailable".*no node has a place for it: 0\/2 nodes .*Insufficient cpu/);
    expect(engine.server.cli(["logs", "large"]).out).toMatch(/Unschedulable: no node has a place/);
    expect(engine.server.cli(["get", "large"]).out).toContain("Insufficient cpu");
  });

  it("__init__ fails", async () => {
    const predictor = ECHO("1").replace("config): pass", 'config): raise OSError("no model")');
    engine.deploy({ name: "broken" }, predictor, { wait: false });
    expect(await engine.untilApi("broken", status)).toContain("OSError: no model");
    const { out } = engine.server.cli(["logs", "broken"]);
    expect(out).toMatch(/could not be set up: OSError: no model/);
    expect(out).toMatch(/Traceback[\s\S]*raise OSError/);
  });

  it("its requirements cannot be installed", async () => {
    const files = { "requirements.txt": "--no-index\nnowhere-at-all==1\n" };
    engine.deploy({ name: "needy" }, ECHO("1"), { wait: false, files });
    expect(await engine.untilApi("needy", status)).toMatch(
      /"requirements.txt failed: there is no nowhere-at-all==1 for Python 3/,
    );
    const { out } = engine.server.cli(["logs", "needy"]);
    expect(out).toMatch(/replica quern-needy-\S+ is not prepared: requirements.txt failed: there is no/);
    expect(out).toMatch(/ERROR: No matching distribution found for nowhere-at-all==1/);
  });

  it("it needs more memory than it may", async () => {
    engine.deploy({ name: "greedy", compute: { cpu: "50m", mem: "128Mi" } }, ECHO("1"));
    expect((await engine.predict("greedy", "memory")).status).toBe(502);
    await eventually(
      "the log says why",
      () => {
        const { out } = engine.server.cli(["logs", "greedy"]);
        return /needed more memory than its compute.mem/.test(out);
      },
      60_000,
    );
  });
});

describe("an image that cannot be pulled", () => {
  it("says so, and the pods before go on", async () => {
    const before = engine.pods("echo");
    const compute = { cpu: "50m", image: "quern.test/absent:1" };
    engine.deploy({ ...ECHO_API, compute }, ECHO("3"), { wait: false });
    const state = await engine.untilApi("echo", /ImagePullFailed/);
    expect(state).toMatch(/"status":"error".*ImagePullFailed: container worker: .*quern\.test\/absent:1/);
    expect(engine.server.cli(["logs", "echo"]).out).toMatch(/ImagePullFailed: container worker/);
    await serves("echo", "1", 2);
    expect(engine.pods("echo")).toEqual(expect.arrayContaining(before));
    expect(engine.server.cli(["rollback", "echo"]).code).toBe(0);
    await engine.untilApi("echo", /"status":"live"/);
    const isOver = () => engine.pods("echo").join() === before.join();
    await eventually("only the pods of before are left", isOver, 60_000);
  });
});

describe("deleting", () => {
  it("removes all objects of an API", async () => {
    for (const name of ["large", "broken", "needy", "greedy", "placed", "asleep"])
      engine.server.cli(["delete", name, "--force"]);
    const left = () =>
      engine.kubectl(
        "get",
        "deploy,rs,pods,secret,pdb",
        "-l",
        "quern.dev/api!=echo,quern.dev/api",
        "-o",
        "name",
      );
    await eventually("all are gone", () => left() === "", 90_000, left);
  });

  it("removes also what was left while no controller ran", async () => {
    await engine.server.stopProcesses();
    const names = ["deployment", "secret", "poddisruptionbudget"];
    for (const kind of names) {
      const copy = JSON.parse(engine.kubectl("get", kind, "quern-echo-api", "-o", "json"));
      const text = JSON.stringify(copy)
        .replaceAll("quern-echo-api", "quern-orphan-api")
        .replaceAll('"quern.dev/api":"echo"', '"quern.dev/api":"orphan"');
      const object = JSON.parse(text);
      delete object.metadata.resourceVersion;
      delete object.metadata.uid;
      engine.apply(object);
    }
    await engine.server.start();
    const left = () => engine.kubectl("get", "deploy,secret,pdb", "-l", "quern.dev/api=orphan", "-o", "name");
    await eventually("the orphan is gone", () => left() === "", 60_000, left);
    await serves("echo", "1", 2);
  });
});

it("has rights in its namespace only", () => {
  const token = /token: ([\w.-]+)/.exec(readFileSync(engine.kubeconfig, "utf8"))![1]!;
  const can = (...args: string[]) => engine.canI(token, ...args);
  const rights = can("--list", "--namespace=default");
  expect(rights).not.toMatch(/deployments|secrets|pods/);
  expect(can("--list", `--namespace=${engine.namespace}`)).toMatch(/deployments/);
});
