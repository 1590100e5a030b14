/**
 * Real-time serving compared with the usual tools: FastAPI, MLServer, LitServe, BentoML and Ray Serve, each at its best
 * settings with one worker, loaded by wrk one after the other. Peers are installed into `.bench/serving`; wrk must be there
 * (Debian: wrk).
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../test/harness/eventually.ts";
import { freePort } from "../test/harness/faulty-proxy.ts";
import { TestServer } from "../test/harness/server.ts";
import { median, report } from "./measure.ts";
import { install } from "./serving/install.ts";
import { FLOWER, LARGE, PEERS, type Peer, peersDirectory } from "./serving/peers.ts";
import { end, pssMiB } from "./serving/process-tree.ts";
import { fixedRate, type Load, rounds, tell, wrk } from "./serving/wrk.ts";

const ROUNDS = 3;
const QUERN_YAML = `
- name: noop
  predictor: {path: noop.py}
  autoscaling: {max_replicas: 1}
- name: echo
  predictor: {path: echo.py}
  autoscaling: {max_replicas: 1}
- name: iris
  predictor: {path: classify.py}
  autoscaling: {max_replicas: 1}
- name: sleep
  predictor: {path: sleep.py, threads_per_process: 64}
  autoscaling: {max_replicas: 1}
`;
const CLASS = (body: string, imports = "") =>
  `${imports}\nclass PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): ${body}\n`;

export async function benchServing(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const fastapi = install(directory, "fastapi", ["fastapi", "uvicorn[standard]", "scikit-learn"]);
  const server = new TestServer({ QUERN_PYTHON: join(fastapi, "python") });
  await server.start();
  const noop = CLASS('return "versicolor" if payload["petal_length"] > 2 else "setosa"');
  server.deploy({ "quern.yaml": "- name: noop\n  predictor: {path: noop.py}\n", "noop.py": noop });
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const idle = pssMiB(server.parent!.pid!);
  report("idle memory of all processes with one API, PSS, MiB", idle, "<= 150", idle <= 150);
  server.deploy({
    "quern.yaml": QUERN_YAML,
    "noop.py": noop,
    "echo.py": CLASS("return payload"),
    "classify.py": CLASS("return classify(payload)", "from iris import classify"),
    "sleep.py": CLASS("time.sleep(0.02)", "import time"),
    "iris.py": readFileSync(join(peersDirectory, "iris.py"), "utf8"),
  });
  await besideFastApi(server, fastapi, directory);
  await sleeping(server, directory);
  const ours = median(
    (await rounds(ROUNDS, () => wrk(directory, `${server.baseUrl}/noop`, FLOWER, server.parent!.pid!))).map(
      ({ rate }) => rate,
    ),
  );
  for (const peer of PEERS) {
    const theirs = await loadPeer(peer, install(directory, peer.name, peer.packages), directory);
    tell(peer.name, theirs);
    const ratio = ours / theirs.rate;
    report(`no-op JSON: rate / ${peer.name}`, ratio, `>= ${peer.atLeast}`, ratio >= peer.atLeast);
  }
  await server.stop();
  await twoGateways(directory, noop);
}

async function besideFastApi(server: TestServer, bin: string, directory: string): Promise<void> {
  const port = await freePort();
  const child = spawn(
    join(bin, "uvicorn"),
    ["fastapi_peer:app", "--port", String(port), "--workers", "1", "--no-access-log", "--log-level", "error"],
    { cwd: peersDirectory, stdio: "ignore", detached: true },
  );
  const base = `http://127.0.0.1:${port}`;
  await answers(`${base}/noop`, FLOWER);
  const [ours, theirs]: [Load[], Load[]] = [[], []];
  const both = async (path: string, payload: unknown) => ({
    ours: await wrk(directory, `${server.baseUrl}${path}`, payload, server.parent!.pid!),
    theirs: await wrk(directory, `${base}${path}`, payload, child.pid!),
  });
  await both("/noop", FLOWER);
  for (let round = 0; round < ROUNDS; round++) {
    const pair = await both("/noop", FLOWER);
    ours.push(pair.ours);
    theirs.push(pair.theirs);
  }
  tell("quern", ours.at(-1)!);
  tell("FastAPI", theirs.at(-1)!);
  const cpu = median(ours.map((load, at) => load.cpuPer1k / theirs[at]!.cpuPer1k));
  report("no-op JSON: CPU a request, all processes / FastAPI async", cpu, "<= 0.5", cpu <= 0.5);
  const half = Math.round(median(theirs.map(({ rate }) => rate)) / 2);
  const fixed = (url: string) => fixedRate(url, half);
  const calm = (
    await rounds(ROUNDS, async () => ({
      ours: fixed(`${server.baseUrl}/noop`),
      theirs: fixed(`${base}/noop`),
    }))
  ).map(({ ours: a, theirs: b }) => ({ p50: a.p50_ms / b.p50_ms, p99: a.p99_ms / b.p99_ms, a, b }));
  console.log(
    `  at ${half}/s: quern p50 ${calm[0]!.a.p50_ms.toFixed(2)} p99 ${calm[0]!.a.p99_ms.toFixed(2)} ms | FastAPI p50 ${calm[0]!.b.p50_ms.toFixed(2)} p99 ${calm[0]!.b.p99_ms.toFixed(2)} ms`,
  );
  const p50 = median(calm.map((ratio) => ratio.p50));
  const p99 = median(calm.map((ratio) => ratio.p99));
  report("at half of FastAPI's peak: p50 / FastAPI", p50, "<= 1", p50 <= 1);
  report("at half of FastAPI's peak: p99 / FastAPI", p99, "<= 1.25", p99 <= 1.25);
  for (const [what, path, payload] of [
    ["100 KB JSON", "/echo", LARGE],
    ["scikit-learn iris", "/iris", FLOWER],
  ] as const) {
    const pairs = await rounds(ROUNDS, () => both(path, payload));
    tell(`quern, ${what}`, pairs[0]!.ours);
    tell(`FastAPI, ${what}`, pairs[0]!.theirs);
    const ratio = median(pairs.map((pair) => pair.ours.rate / pair.theirs.rate));
    report(`${what}: rate / FastAPI async`, ratio, ">= 1", ratio >= 1);
  }
  await end(child);
}

async function sleeping(server: TestServer, directory: string): Promise<void> {
  const load = await wrk(directory, `${server.baseUrl}/sleep`, FLOWER, server.parent!.pid!, 64);
  tell("20 ms of sleep, 64 threads", load);
  const share = load.rate / (64 / 0.02);
  report("20 ms sleeping, 64 threads, concurrency 64: rate / ideal", share, ">= 0.9", share >= 0.9);
}

async function twoGateways(directory: string, noop: string): Promise<void> {
  const both = [];
  for (const gateways of ["1", "2"]) {
    const server = new TestServer();
    await server.start({}, ["--gateways", gateways]);
    server.deploy({
      "quern.yaml":
        "- name: noop\n  predictor: {path: noop.py, processes_per_replica: 2}\n  autoscaling: {max_replicas: 1}\n",
      "noop.py": noop,
    });
    await wrk(directory, `${server.baseUrl}/noop`, FLOWER, server.parent!.pid!);
    const loads = await rounds(ROUNDS, () =>
      wrk(directory, `${server.baseUrl}/noop`, FLOWER, server.parent!.pid!),
    );
    tell(`${gateways} gateway(s)`, loads[0]!);
    both.push({
      rate: median(loads.map(({ rate }) => rate)),
      cpu: median(loads.map(({ cpuPer1k }) => cpuPer1k)),
    });
    await server.stop();
  }
  const [rate, cpu] = [both[1]!.rate / both[0]!.rate, both[1]!.cpu / both[0]!.cpu];
  report("two gateways: rate / one", rate, ">= 1.05", rate >= 1.05);
  report("two gateways: CPU a request / one", cpu, "<= 1.25", cpu <= 1.25);
}

async function loadPeer(peer: Peer, bin: string, directory: string): Promise<Load> {
  const port = await freePort();
  const [command, args, env] = peer.command(bin, port);
  const child = spawn(command, args, {
    cwd: peersDirectory,
    stdio: "ignore",
    detached: true,
    env: { ...process.env, ...env },
  });
  const url = `http://127.0.0.1:${port}${peer.path}`;
  await answers(url, peer.payload);
  await wrk(directory, url, peer.payload, child.pid!);
  const loads = await rounds(ROUNDS, () => wrk(directory, url, peer.payload, child.pid!));
  await end(child);
  return loads.sort((a, b) => a.rate - b.rate)[Math.floor(ROUNDS / 2)]!;
}

async function answers(url: string, payload: unknown): Promise<void> {
  const init = {
    method: "POST",
    body: JSON.stringify(payload),
    headers: { "content-type": "application/json" },
  };
  await eventually(
    `${url} answers`,
    () =>
      fetch(url, init).then(
        ({ ok }) => ok,
        () => false,
      ),
    120_000,
  );
}
