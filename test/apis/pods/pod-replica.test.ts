/** A replica in a pod: the controller's side of it against a real launcher, which runs here as a plain process. */
import { createPrivateKey } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { PodReplica } from "../../../src/apis/pods/pod-replica.ts";
import { ProjectServer } from "../../../src/apis/pods/project-server.ts";
import type { Lifetime } from "../../../src/engine/lifetime.ts";
import { issueCertificate, makeAuthority } from "../../../src/kubernetes/certificates/certificate.ts";
import { launcherFacts } from "../../../src/kubernetes/pods/launcher.ts";
import type { Init } from "../../../src/protocol/messages.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { LaunchedPod, ProjectServer as Projects } from "../../harness/launched-pod.ts";
import { PredictingCaller, WORKER_TOKEN } from "../../harness/started-worker.ts";

const API = "echo";
const INIT = {
  ...{
    api_id: "v1",
    project: "/elsewhere",
    path: "predictor.py",
    api_config: "{}",
    concurrency: 4,
    threads: 1,
  },
  ...{ expose_errors: false, pass_credentials: false },
};
const lifetime = (text: string, ms: number) => ({
  startup: { ms, text },
  maxRequests: undefined,
  maxAgeMs: undefined,
});

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Gives the project over TLS, as the controller does. */
async function serveProjects(projects: Projects, apis: readonly string[]) {
  const now = new Date();
  const authority = makeAuthority("test", now);
  const port = await freePort();
  const server = new ProjectServer({
    listen: { host: "127.0.0.1", port },
    certificate: () =>
      issueCertificate({ ...authority, privateKey: createPrivateKey(authority.key) }, ["127.0.0.1"], now),
    apisOf: async (id) => (projects.archives.has(id) ? [...apis] : []),
    isTokenOf: (names, token) => names.includes(API) && token === WORKER_TOKEN,
    archive: async (id) => {
      const { Readable } = await import("node:stream");
      return Readable.from([projects.archives.get(id)!]);
    },
    onFailure: (error) => {
      throw error;
    },
  });
  await server.start();
  stops.push(() => server.stop());
  return { url: (id: string) => `https://127.0.0.1:${port}/-/projects/${id}`, ca: authority.cert };
}

async function launch(predictor: string, apis: readonly string[] = [API]) {
  const projects = await Projects.start();
  stops.push(() => projects.stop());
  const { url, ca } = await serveProjects(projects, apis);
  const id = await projects.add({ "predictor.py": predictor });
  const pod = await LaunchedPod.start(url(id), {}, undefined, (directory) => {
    writeFileSync(join(directory, "secrets", "ca.crt"), ca);
    return {
      command: "python3",
      args: ["-m", "quern_launcher"],
      cwd: join(import.meta.dirname, "../../../python"),
    };
  });
  stops.push(() => pod.stop());
  return pod;
}

function replicaOf(pod: LaunchedPod, life: Lifetime = lifetime("10m", 600_000), init: Init = INIT) {
  const events: string[] = [];
  const { port } = pod.address as { port: number };
  const ca = readFileSync(join(pod.directory, "secrets", "tls.crt"), "utf8");
  const replica = new PodReplica(
    {
      ...{ name: "echo-1", uid: "1", predictor_id: "p", token: WORKER_TOKEN, ca, serverName: "quern", port },
      startedMs: performance.now(),
    },
    { init: async () => init, epoch: 1, lifetime: life },
    {
      onReady: () => events.push("ready"),
      onFailed: (_, fault) =>
        events.push(`failed: ${fault.type}: ${fault.message} ${fault.traceback !== ""}`),
      onGone: (_, { wasServing }) => events.push(`gone: ${wasServing}`),
      onLongStart: () => {},
      onWear: ({ wear }) => events.push(wear),
    },
  );
  stops.push(() => replica.end());
  replica.follow("127.0.0.1");
  return { replica, events };
}

const happened = (events: readonly string[], wanted: string) =>
  eventually(
    `it is ${wanted}`,
    () => events.includes(wanted),
    30_000,
    () => events.join(),
  );

const PREDICTOR =
  "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload, headers): return 1\n";

describe("a replica in a pod", () => {
  it("is set up, and again after its worker was killed", async () => {
    const pod = await launch(PREDICTOR);
    const { replica, events } = replicaOf(pod);
    await happened(events, "ready");
    expect([replica.state, replica.wants, replica.isConnected]).toEqual(["ready", ["headers"], true]);
    process.kill((await pod.facts()).pid!, "SIGKILL");
    await eventually(
      "it is ready again",
      () => events.filter((event) => event === "ready").length === 2,
      30_000,
    );
    expect(events).toEqual(["ready", "gone: true", "ready"]);
    const launcher = { host: "127.0.0.1", port: pod.healthPort, token: WORKER_TOKEN };
    const facts = await launcherFacts(launcher);
    expect([facts?.starts, facts?.last_exit?.signal]).toEqual([2, "SIGKILL"]);
    expect((await pod.readiness()).text).toBe("ok\n");
    expect(await launcherFacts({ ...launcher, token: "wrong" })).toBeUndefined();
  });

  it("says why __init__ failed, and is tried again", async () => {
    const pod = await launch(PREDICTOR.replace("config): pass", "config): raise OSError('no model')"));
    const { replica, events } = replicaOf(pod);
    const failure = "failed: OSError: no model true";
    await eventually("it failed twice", () => events.filter((event) => event === failure).length > 1, 30_000);
    expect(replica.trouble).toEqual({ kind: "init", message: "OSError: no model" });
    expect(events).not.toContain("ready");
  });

  it("fails if __init__ takes longer than it may", async () => {
    const pod = await launch(PREDICTOR.replace("config): pass", "config): __import__('time').sleep(600)"));
    const { replica, events } = replicaOf(pod, lifetime("1s", 1_000));
    await eventually("it failed", () => events.length > 0, 30_000);
    expect(events[0]).toMatch(/^failed: StartTimeout: the worker was not ready after 1s/);
    expect(replica.trouble?.kind).toBe("timeout");
  });

  it("does not come back once its pod is leaving", async () => {
    const pod = await launch(PREDICTOR);
    const { replica, events } = replicaOf(pod);
    await happened(events, "ready");
    replica.leave();
    pod.process.kill("SIGTERM");
    await eventually("the launcher has ended", () => pod.process.exitCode !== null, 30_000);
    await eventually("the connection is closed", () => !replica.isConnected);
    expect([events, replica.state]).toEqual([["ready"], "draining"]);
  });
});

describe("a replica in a pod is worn", () => {
  const { maxAgeMs: _, ...rest } = lifetime("10m", 600_000);

  it("at max_age, and its successor in the same pod is not", async () => {
    const pod = await launch(PREDICTOR);
    const { replica, events } = replicaOf(pod, { ...rest, maxAgeMs: 1_500 });
    await happened(events, "worn");
    expect(events).toEqual(["ready", "worn"]);
    process.kill((await pod.facts()).pid!, "SIGKILL");
    await eventually("it is ready again", () => events.at(-1) === "ready", 30_000);
    expect(replica.wear).toBe("fresh");
    replica.leave();
  });

  it("when its worker has taken max_requests, also for another controller", async () => {
    const pod = await launch(PREDICTOR.replace(", headers", ""));
    const init = { ...INIT, max_requests: 2 };
    const { replica, events } = replicaOf(pod, lifetime("10m", 600_000), init);
    await happened(events, "ready");
    const gateway = await PredictingCaller.open(pod.address, "gateway");
    stops.push(() => gateway.connection.close());
    for (let sent = 0; sent < 2; sent++) await gateway.predict(Buffer.from("1"));
    await happened(events, "worn");
    replica.end();
    const next = replicaOf(pod, lifetime("10m", 600_000), init);
    await happened(next.events, "worn");
    expect(next.events).toEqual(["ready", "worn"]);
  });
});

describe("a pod's project", () => {
  it("is not given to the token of another API", async () => {
    const pod = await launch(PREDICTOR, ["other"]);
    await pod.untilReadiness(/503 failed: the server answers 401 to .*does not open this project/);
    const failure = { is_final: false, is_of_environment: false, step: null };
    expect((await pod.facts()).failure).toMatchObject(failure);
  });
});
