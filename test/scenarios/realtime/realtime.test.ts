import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { processes } from "../../harness/processes.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { RawRequests } from "../../harness/raw-requests.ts";
import { TestServer } from "../../harness/server.ts";

describe("a real-time API", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(OBEDIENT, { predictorFields: ", timeout: 5s" }));
  });
  afterAll(() => server.stop());

  const predict = async (payload: unknown) => {
    const response = await server.post("/echo", payload);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it("serves with every legal duration, even with fractions of milliseconds", async () => {
    for (const timeout of ["2.01s", "1500us"]) {
      server.deploy(
        {
          "quern.yaml": `- name: odd\n  predictor: {path: p.py, timeout: ${timeout}}\n  autoscaling: {window: 1.0001s}\n`,
          "p.py":
            "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return 1\n",
        },
        { wait: false },
      );
      expect([timeout, (await predict({ id: "here" })).body]).toEqual([timeout, "here"]);
    }
    const gateway = server.child("gateway");
    // It would have ended by now, and been refused at every start.
    expect((await predict({ id: "still here" })).body).toBe("still here");
    expect(server.child("gateway")).toBe(gateway);
    expect(server.cli(["delete", "odd", "-y"]).code).toBe(0);
  });

  it("logs each 5xx that is not the predictor's, with the request id", async () => {
    const ask = (payload: unknown, id: string) => server.post("/echo", payload, { "x-request-id": id });
    expect((await ask({ do: "exit" }, "died-1")).status).toBe(502);
    await eventually("another serves", async () => (await ask({ id: 1 }, "fine-1")).status === 200);
    expect((await ask({ do: "raise" }, "raised-1")).status).toBe(500);
    const lines = () =>
      server.stderr
        .split("\n")
        .filter((text) => text.includes('"name":"gateway"'))
        .map((text) => JSON.parse(text) as Record<string, unknown>);
    await eventually("it is there", () => lines().some(({ request_id }) => request_id === "died-1"));
    expect(lines().find(({ request_id }) => request_id === "died-1")).toMatchObject({
      code: "worker_died",
      method: "POST",
      path: "/echo",
      msg: expect.stringContaining("the worker died"),
    });
    expect(lines().filter(({ request_id }) => /raised|fine/.test(String(request_id)))).toEqual([]);
  });

  it("returns the result of predict() as JSON", async () => {
    const response = await server.post("/echo", { id: "setosa" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toBeTruthy();
    expect(await response.text()).toBe('"setosa"');
  });

  it("accepts arrays, and returns arrays of the same length", async () => {
    expect((await predict([{ id: 1 }, { id: 2 }, { id: 3 }])).body).toEqual([1, 2, 3]);
  });

  it("keeps every digit of integers that JavaScript would round", async () => {
    const response = await server.post("/echo", '{"id": 12345678901234567890123}');
    expect(await response.text()).toBe("12345678901234567890123");
  });

  it("forwards the caller's request id if it is valid", async () => {
    const response = await server.post("/echo", { id: 1 }, { "x-request-id": "mine-1" });
    expect(response.headers.get("x-request-id")).toBe("mine-1");
  });

  it("gives an id to each response, also to what is refused before any API has it", async () => {
    const requests = new RawRequests(server.baseUrl);
    const lines = ["OPTIONS /echo", "GET /nosuch", "GET /-/livez", "no request"];
    const sent = [
      ...lines.map((line) => requests.send(line, {})),
      requests.send("GET /echo", { expect: "x" }),
    ];
    for (const each of sent) {
      await each.firstStatus();
      expect(each.text).toMatch(/^x-request-id: [\w-]+\r$/im);
    }
    requests.close();
  });

  it("transfers bodies of several megabytes in both directions", async () => {
    const text = "z".repeat(5_000_000);
    expect((await predict({ id: text })).body).toBe(text);
  });

  it.each([
    ["malformed JSON", "{", 400, "malformed_json"],
    ["an empty body", "", 400, "malformed_json"],
    ["an exception in predict()", { do: "raise" }, 500, "prediction_failed"],
    ["sys.exit() in predict()", { do: "sysexit" }, 500, "prediction_failed"],
    ["a prediction that is not JSON", { do: "set" }, 500, "prediction_not_serializable"],
    ["a worker that exits", { do: "exit" }, 502, "worker_died"],
    ["a worker that crashes", { do: "segfault" }, 502, "worker_died"],
  ])("answers %s with a problem", async (_, payload, status, code) => {
    const answer = await predict(payload);
    expect(answer).toMatchObject({ status, body: { code, status, type: `urn:quern:error:${code}` } });
    expect(answer.body.message).toBe(answer.body.detail);
    expect((await predict({ id: "still here" })).body).toBe("still here");
  });

  it("answers an exception with its status_code and detail", async () => {
    expect(await predict({ do: "http" })).toEqual({ status: 418, body: { detail: { short: "and stout" } } });
  });

  it.each(["print", "fork", "stdin", "chdir", "thread", "signals", "child"])(
    "survives a predictor that does: %s",
    async (act) => {
      expect((await predict({ do: act, id: act, times: 3000 })).status).toBe(200);
      expect((await predict({ id: "still here" })).body).toBe("still here");
    },
  );

  it("logs what user code prints, with time and worker, and tracebacks", async () => {
    await predict({ do: "raise", id: "for the log" });
    await eventually("the traceback is in the log", () =>
      server.cli(["logs", "echo"]).out.includes("ValueError: no good: for the log"),
    );
    expect(server.cli(["logs", "echo"]).out).toMatch(/^\d{4}-\S+Z r-[0-9a-f]{8} y{999}$/m);
  });

  it("refuses other methods and hosts with a cure, and describes itself on GET", async () => {
    const put = await server.fetch("/echo", { method: "PUT", body: "{}" });
    expect([put.status, put.headers.get("allow")]).toEqual([405, "GET, HEAD, POST, OPTIONS"]);
    const get = await server.fetch("/echo");
    expect(get.status).toBe(200);
    expect(await get.json()).toMatchObject({ api: "echo", message: expect.stringContaining("POST") });
    expect((await server.post("/nobody", {})).status).toBe(404);
    const { request } = await import("node:http");
    const status = await new Promise((resolve) => {
      request(`${server.baseUrl}/echo`, { method: "POST", headers: { host: "evil.example" } }, (answer) =>
        resolve(answer.statusCode),
      ).end();
    });
    expect(status).toBe(421);
  });

  it("does not expose its internal addresses in any spelling", async () => {
    const { request } = await import("node:http");
    for (const path of [
      "/-/internal/routes",
      "/-/../-/internal/routes",
      "/-/%69nternal/routes",
      "/-/../routes",
      "//routes",
      "/-/..%2froutes",
      "/routes",
    ]) {
      const status = await new Promise((resolve) => {
        request(server.baseUrl, { path }, (answer) => resolve(answer.statusCode)).end();
      });
      expect([400, 401, 404], path).toContain(status);
    }
  });

  it("keeps answering after a thousand clients left without waiting", async () => {
    const { connect } = await import("node:net");
    const { hostname, port } = new URL(server.baseUrl);
    const body = JSON.stringify({ id: "x".repeat(400_000) });
    const head = `POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const leave = (i: number) =>
      new Promise((resolve) => {
        const socket = connect(Number(port), hostname, () =>
          socket.write(i % 4 === 0 ? head + body : head + body.slice(0, 1000), () =>
            setTimeout(() => socket.destroy(), i % 7),
          ),
        );
        socket.on("error", resolve).on("close", resolve);
      });
    for (let round = 0; round < 20; round++)
      await Promise.all(Array.from({ length: 50 }, (_, i) => leave(i)));
    expect((await predict({ id: "still here" })).body).toBe("still here");
  });

  it("shows nothing of the server's own environment to user code", async () => {
    const { body } = await predict({ do: "env" });
    expect(Object.keys(body).filter((name) => name.startsWith("QUERN_"))).toEqual(["QUERN_API_URL"]);
    // The programs of its interpreter are found first.
    const executable = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], {
      encoding: "utf8",
    });
    expect((body.PATH as string).split(":")[0]).toBe(dirname(executable.trim()));
  });

  it("lets a predict() that holds the interpreter finish within its time", async () => {
    const slow = predict({ do: "hold", seconds: 3, id: "held" });
    expect((await predict({ id: "after it" })).body).toBe("after it");
    expect((await slow).body).toBe("held");
  });

  it("kills a predict() that exceeds predictor.timeout, answers 504, and keeps serving", async () => {
    const before = (await predict({ do: "pid" })).body;
    const answer = await predict({ do: "hold", seconds: 20 });
    expect(answer).toMatchObject({ status: 504, body: { code: "prediction_timeout" } });
    expect((await predict({ id: "again" })).body).toBe("again");
    expect((await predict({ do: "pid" })).body).not.toBe(before);
    expect(processes().some(({ pid }) => pid === Number(before))).toBe(false);
  });
});

describe("the queue of a real-time API", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(
      project(OBEDIENT, { realtime: "  autoscaling: {min_replicas: 2, max_replica_concurrency: 2}\n" }),
    );
  });
  afterAll(() => server.stop());

  it("refuses requests beyond its limit with 503 and Retry-After, and answers the rest on both replicas", async () => {
    const gate = join(server.dir, "gate");
    let refused = 0;
    const asked = Array.from({ length: 10 }, async () => {
      const answer = await server.post("/echo", [{ do: "await", path: gate }, { do: "pid" }]);
      if (answer.status === 503) refused++;
      return answer;
    });
    await eventually("what is too much is refused", () => refused === 6);
    writeFileSync(gate, "");
    const answers = await Promise.all(asked);
    const statuses = answers.map((answer) => answer.status).sort();
    expect(statuses).toEqual([200, 200, 200, 200, 503, 503, 503, 503, 503, 503]);
    expect(answers.find((answer) => answer.status === 503)!.headers.get("retry-after")).toBe("1");
    const answered = answers.filter(({ status }) => status === 200);
    const pids = await Promise.all(answered.map(async (one) => ((await one.json()) as unknown[])[1]));
    expect(new Set(pids).size).toBe(2);
  });

  it("frees the slot of a client that leaves while it waits", async () => {
    const [gate, touched] = [join(server.dir, "busy-may-end"), join(server.dir, "busy")];
    const busy = [0, 1].map((n) => server.post("/echo", { do: "await", path: gate, touch: touched + n }));
    // The other request may wait at the same replica: both count. So all requests here wait for the gate.
    await eventually("one runs", () => [0, 1].some((n) => existsSync(touched + n)));
    const leaving = new AbortController();
    const waiting = server
      .fetch("/echo", {
        method: "POST",
        body: JSON.stringify({ do: "await", path: gate }),
        headers: { "content-type": "application/json" },
        signal: leaving.signal,
      })
      .catch(() => "left");
    await eventually("it waits behind them", async () => (await server.inFlight("echo")) === 3);
    leaving.abort();
    expect(await waiting).toBe("left");
    // With these two, two more make four, the limit. Until then only a third is refused.
    const refused: number[] = [];
    const more = [1, 2, 3].map(async (id) => {
      for (;;) {
        const { status } = await server.post("/echo", { do: "await", path: gate, id });
        if (status !== 503) return status;
        refused.push(id);
      }
    });
    await eventually(
      "two of three fit",
      () => refused.length >= 20 && new Set(refused.slice(-20)).size === 1,
    );
    writeFileSync(gate, "");
    expect(await Promise.all(more)).toEqual([200, 200, 200]);
    await Promise.all(busy);
  });
});

/** How often a process waited: something woke it each time. */
function wakes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)![1]);
}

describe("a predictor's environment", () => {
  const server = new TestServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  it("has its declared query and headers, its own directories and variables, and shows errors on request", async () => {
    server.deploy({
      ...project(
        "import os, deep\nfrom beside import WORD\nclass PythonPredictor:\n  def __init__(self, config): pass\n" +
          "  def predict(self, headers, query_params):\n    if 'fail' in query_params: raise ValueError('as asked')\n" +
          "    return [query_params, headers['x-mine'], WORD, deep.WORD, os.environ['MINE'], os.getcwd() == os.environ['PYTHONPATH'].split(':')[0]]\n",
        { predictorFields: ", python_path: lib, expose_errors: true, env: {MINE: from env}" },
      ),
      "beside.py": "WORD = 'beside'\n",
      "lib/deep.py": "WORD = 'deep'\n",
      // Names of the standard library in a project do not disturb the runtime.
      "json.py": "raise RuntimeError('shadowed')\n",
      "selectors.py": "raise RuntimeError('shadowed')\n",
    });
    const response = await server.post("/echo?a=1&b=x%20y", "", { "x-mine": "h" });
    expect(await response.json()).toEqual([{ a: "1", b: "x y" }, "h", "beside", "deep", "from env", true]);
    const failed = (await (await server.post("/echo?fail", "")).json()) as { code: string; detail: string };
    expect(failed.code).toBe("prediction_failed");
    expect(failed.detail).toContain("ValueError: as asked");
    expect(failed.detail).toMatch(/predictor\.py", line 6, in predict/);
  });

  it("has no timer faster than a second in any process while the server is idle", async () => {
    const pids = [
      server.parent!.pid!,
      server.child("gateway"),
      server.child("controller"),
      ...server.workers(),
    ];
    let before = pids.map(wakes);
    let sinceMs = performance.now();
    let rates: number[] = [];
    const isQuiet = () => {
      if (performance.now() - sinceMs < 3000) return false;
      const [now, tookMs] = [pids.map(wakes), performance.now() - sinceMs];
      rates = now.map((count, at) => ((count - before[at]!) / tookMs) * 1000);
      [before, sinceMs] = [now, performance.now()];
      // Three timers of a second each at most.
      return rates.every((rate) => rate < 4);
    };
    await eventually("all are quiet", isQuiet, 40_000, () => `wakes a second: ${rates.join(", ")}`);
  }, 60_000);
});
