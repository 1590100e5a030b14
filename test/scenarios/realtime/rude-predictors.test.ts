/**
 * Predictors that raise, return or fork unexpectedly: each affects only its own batch or request, and counts stay
 * exact.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAULT_MESSAGE_BYTES_MAX } from "../../../src/contracts/limits/frames.ts";
import { eventually } from "../../harness/eventually.ts";
import { readStream } from "../../harness/read-stream.ts";
import { TestServer } from "../../harness/server.ts";

const BATCHES = `
import os, signal
class Invalid(Exception):
    status_code = 422
    detail = {"score": float("nan")}
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        for item in payload:
            do = item.get("do")
            if do == "shout": raise ValueError("x" * 600_000)
            if do == "quote": raise ValueError("cannot use %s" % payload)
            if do == "nan": raise Invalid()
            if do == "raise": raise ValueError("no good")
            if do == "fork then die":
                child = os.fork()
                if child == 0: return
                os.waitpid(child, 0)
                os.kill(os.getpid(), signal.SIGKILL)
`;

/** Counts a failure as two successes. */
const LIAR = `
from quern_runtime.deliveries import Progress
def failed(self, delivery, fault):
    self.succeeded, self.up_to = self.succeeded + 2, delivery
Progress.failed = failed
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if "bad" in payload[0]: raise ValueError("no good")
`;

/** The same for \`def\` and \`async def\`. */
const REQUESTS = (isAsync: boolean) => `
import asyncio, os, signal, time
class Invalid(Exception):
    status_code = 422
    detail = {"score": float("nan")}
class Response:
    def __init__(self, body, status_code=200, headers=None):
        self.body, self.status_code, self.headers = body, status_code, headers or {}
class PythonPredictor:
    def __init__(self, config): pass
    ${isAsync ? "async " : ""}def predict(self, payload):
        do = payload.get("do")
        if do == "wait":
            ${isAsync ? "await asyncio.sleep(payload['seconds'])" : "time.sleep(payload['seconds'])"}
        if do == "nan": raise Invalid()
        if do == "answer":
            size = payload.get("bytes", 1)
            body = (b"x" * size for _ in range(2)) if payload.get("stream") else b"x" * size
            return Response(body, payload.get("status", 200), payload.get("headers"))
        if do == "fork":
            child = os.fork()
            if child == 0: return "the child"
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if do == "fork then die":
            with open(payload["log"], "a") as log: log.write("begun\\n")
            child = os.fork()
            if child == 0: return "the child"
            os.waitpid(child, 0)
            os.kill(os.getpid(), signal.SIGKILL)
        if do == "late piece": return self.late(payload)
        return payload
    def late(self, payload):
        yield "first"
        with open(payload["log"], "a") as log: log.write("begun\\n")
        while not os.path.exists(payload["go"]): time.sleep(0.01)
        yield "x" * 5_000_000
`;

/** Without the checks of the runtime, those of the gateway remain. */
const UNCHECKED = `
import quern_runtime.answers, quern_runtime.calls, quern_runtime.protocol as protocol
quern_runtime.answers.checked_headers = lambda headers: headers
quern_runtime.answers.checked_status = lambda status: status
encode_result = protocol.encode_result
class Response:
    def __init__(self, payload):
        self.body = (b"x" for _ in range(2)) if payload.get("stream") else b"x" * payload.get("bytes", 1)
        self.status_code, self.headers = payload.get("status", 200), payload.get("headers", {})
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        protocol.encode_result = lambda took, head, body: b"\\xff" * 9 if payload.get("garbage") else encode_result(took, head, body)
        if payload.get("fault"):
            quern_runtime.calls.encode = lambda fault: b'{"detail": NaN'
            raise ValueError("no good")
        return Response(payload)
`;

/** Makes the worker's own loop fail once, as a forgotten alarm does, and leaves a thread that is not a daemon. */
const LATE = (isAsync: boolean) => `
import asyncio, os, threading, time
import quern_runtime.drivers
from quern_runtime.sockets import Sockets
def too_late(*arguments): raise TimeoutError("too late")
class PythonPredictor:
    def __init__(self, config): pass
    ${isAsync ? "async " : ""}def predict(self, payload):
        do = payload[0] if isinstance(payload, list) else payload
        if "once" in do and not os.path.exists(do["once"]):
            open(do["once"], "w").close()
            threading.Thread(target=time.sleep, args=(3600,)).start()
            ${isAsync ? "asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)" : ""}
            Sockets.poll = too_late
        if "thread" in do: quern_runtime.drivers.perform = too_late
        return os.getpid()
`;

const KINDS = ["inline", "threads", "async"] as const;

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy({
    "quern.yaml": `
- {name: jobs, kind: BatchAPI, predictor: {path: batches.py}}
- {name: liar, kind: BatchAPI, predictor: {path: liar.py}}
- {name: inline, predictor: {path: blocking.py, timeout: 30s}}
- {name: threads, predictor: {path: blocking.py, timeout: 30s, threads_per_process: 4}}
- {name: async, predictor: {path: async.py, timeout: 30s}}
- {name: late-jobs, kind: BatchAPI, predictor: {path: late.py}}
- {name: late-inline, predictor: {path: late.py, timeout: 30s}}
- {name: late-threads, predictor: {path: late.py, timeout: 30s, threads_per_process: 2}}
- {name: late-async, predictor: {path: late_async.py, timeout: 30s}}
- {name: unchecked, predictor: {path: unchecked.py, timeout: 30s}}
`,
    "batches.py": BATCHES,
    "liar.py": LIAR,
    "blocking.py": REQUESTS(false),
    "async.py": REQUESTS(true),
    "late.py": LATE(false),
    "late_async.py": LATE(true),
    "unchecked.py": UNCHECKED,
  });
});
afterAll(() => server.stop());

interface Failure {
  batch_index: number;
  error: { type: string; message: string };
}
const failuresOf = async (id: string) =>
  ((await (await server.fetch(`/jobs/${id}/failures?limit=500`)).json()) as { failures: Failure[] }).failures;
const letters = (queue: string) =>
  (JSON.parse(server.cli(["queue", "messages", queue, "-o", "json"]).out) as { messages: unknown[] })
    .messages;

describe("a job", () => {
  const run = async (items: unknown[], fields: Record<string, unknown> = {}) => {
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 }, ...fields });
    return { id, job: await server.ended("jobs", id, 120_000) };
  };

  it("counts all batches that raise messages of 600 KB as failed", async () => {
    const items = Array.from({ length: 20 }, () => ({ do: "shout" }));
    const { id, job } = await run(items);
    expect(job).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 0, failed: 20 },
    });
    const failures = await failuresOf(id);
    expect(failures).toHaveLength(20);
    for (const { error } of failures) {
      expect(error.message).toContain("cut: 600000 characters");
      expect(error.message.length).toBeLessThanOrEqual(FAULT_MESSAGE_BYTES_MAX);
    }
  }, 150_000);

  it("retries batches whose exceptions quote their payload, and writes their messages", async () => {
    const text = "й".repeat(130_000);
    const items = Array.from({ length: 24 }, (_, id) => (id % 3 === 0 ? { do: "quote", text } : { id }));
    const { job } = await run(items, { queue_dead_letter_queue: { arn: "quoted", max_receive_count: 3 } });
    expect(job).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 16, failed: 24 },
    });
    expect(letters("quoted")).toHaveLength(8);
  }, 150_000);

  it("keeps the order of batches if some are longer than the window", async () => {
    const blank = " ".repeat(2_000_000);
    const lines = Array.from({ length: 60 }, (_, id) =>
      id % 20 === 10 ? `{"do":${blank}"raise"}\n` : `{"id":${id}}\n`,
    );
    server.writeInput("wide.jsonl", lines.join(""));
    const id = await server.submit("jobs", {
      workers: 1,
      delimited_files: { store_paths: [`file://${join(server.inputs, "wide.jsonl")}`], batch_size: 1 },
    });
    const job = await server.ended("jobs", id, 120_000);
    expect(job.batch_metrics).toMatchObject({ succeeded: 57, failed: 3 });
    expect((await failuresOf(id)).map(({ batch_index }) => batch_index)).toEqual([10, 30, 50]);
  }, 150_000);

  it("loses only one batch to a detail that is not JSON", async () => {
    const items = Array.from({ length: 200 }, (_, id) => (id === 77 ? { do: "nan" } : { id }));
    const { id, job } = await run(items);
    expect(job.batch_metrics).toMatchObject({ succeeded: 199, failed: 1 });
    expect(await failuresOf(id)).toMatchObject([{ batch_index: 77, error: { type: "Invalid" } }]);
  });

  it("charges the current batch even if a forked child has returned from predict()", async () => {
    const items = Array.from({ length: 40 }, (_, id) => (id === 20 ? { do: "fork then die" } : { id }));
    const { id, job } = await run(items);
    expect(job.batch_metrics).toMatchObject({ succeeded: 39, failed: 1 });
    expect(await failuresOf(id)).toMatchObject([{ batch_index: 20, error: { type: "WorkerDied" } }]);
  });

  it("rejects a worker that reports wrong counts, and ends soon", async () => {
    const items = [{ bad: 1 }, ...Array.from({ length: 50 }, (_, id) => ({ id }))];
    const id = await server.submit("liar", { workers: 1, item_list: { items, batch_size: 1 } });
    const job = await server.ended("liar", id);
    expect(job.reason).toMatchObject({ code: "workers_keep_dying" });
    expect(job.reason!.message).toContain("3 workers broke the protocol");
    // Only correct reports were counted, so the first batch was not.
    expect(job.batch_metrics.failed).toBe(0);
    expect(job.batch_metrics.succeeded).toBeLessThan(51);
    expect(server.cli(["logs", "liar", id]).out).toContain("broke the protocol");
  });
});

describe.each(KINDS)("a request of an API (%s)", (kind) => {
  const ask = async (payload: unknown) => {
    const response = await server.post(`/${kind}`, payload);
    return { status: response.status, body: (await response.json()) as unknown };
  };
  /** The answers of parallel requests. */
  const beside = () => Promise.all([0, 1, 2].map((id) => ask({ do: "wait", seconds: 0.1, id })));
  const isWell = (answers: { status: number }[]) =>
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);

  it("gets a detail that is not JSON as text, and other requests get their answers", async () => {
    const [neighbours, failed] = await Promise.all([beside(), ask({ do: "nan" })]);
    expect(failed).toEqual({ status: 422, body: { detail: "{'score': nan}" } });
    isWell(neighbours);
  });

  it("fails alone and at once if its status or a header is invalid", async () => {
    const wrong = [
      { headers: { "x-a": "1\r\nb: 2" } },
      { headers: { "x-a": "…" } },
      { status: 99 },
      { status: 103 },
    ];
    for (const form of [{}, { stream: true }, { bytes: 400_000 }]) {
      const answers = wrong.map((head) => ask({ do: "answer", ...form, ...head }));
      const [neighbours, ...failed] = await Promise.all([beside(), ...answers]);
      for (const { status, body } of failed)
        expect([status, body]).toEqual([500, expect.objectContaining({ code: "prediction_failed" })]);
      isWell(neighbours);
    }
  });

  it("is not affected by a forked child that returns", async () => {
    const [neighbours, ...forked] = await Promise.all([
      beside(),
      ...[1, 2, 3].map(() => ask({ do: "fork" })),
    ]);
    expect(forked).toEqual([1, 2, 3].map(() => ({ status: 200, body: 0 })));
    isWell(neighbours);
    isWell(await beside());
  });

  it("is not run again after its worker's death, whatever a forked child did before", async () => {
    const log = join(server.dir, `${kind}.log`);
    expect((await ask({ do: "fork then die", log })).status).toBe(502);
    await eventually("another serves", async () => (await ask({ id: 1 })).status === 200);
    expect(readFileSync(log, "utf8")).toBe("begun\n");
  });

  it("does not affect others if its client leaves while a long piece is made", async () => {
    const log = join(server.dir, `${kind}-late.log`);
    const go = join(server.dir, `${kind}-go`);
    appendFileSync(log, "");
    const leaving = new AbortController();
    const left = server
      .fetch(`/${kind}`, {
        method: "POST",
        body: JSON.stringify({ do: "late piece", log, go }),
        headers: { "content-type": "application/json" },
        signal: leaving.signal,
      })
      .then((answer) => answer.text())
      .catch(() => "left");
    await eventually("it makes the second piece", () => readFileSync(log, "utf8") !== "");
    const neighbour = kind === "threads" ? ask({ do: "wait", seconds: 2 }) : undefined;
    leaving.abort();
    expect(await left).toBe("left");
    writeFileSync(go, "");
    isWell(await beside());
    if (neighbour !== undefined) expect((await neighbour).status).toBe(200);
  });
});

describe("a worker whose loop an exception has ended, while a thread of user code runs", () => {
  it("ends at once: its job goes on with another", async () => {
    const once = join(server.dir, "late-jobs");
    const items = [{ once }, {}, {}];
    const id = await server.submit("late-jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    expect((await server.ended("late-jobs", id)).batch_metrics).toMatchObject({ succeeded: 3, failed: 0 });
    expect(server.cli(["logs", "late-jobs", id]).out).toContain("TimeoutError: too late");
  });

  it.each([
    ["late-inline", {}],
    ["late-threads", {}],
    ["late-threads", { thread: true }],
    ["late-async", {}],
  ])("ends at once: another replica serves (%s, %o)", async (api, how) => {
    const serves = async () => (await server.post(`/${api}`, {})).status === 200;
    await eventually("it serves", serves);
    const pid = Number(await (await server.post(`/${api}`, {})).text());
    const once = join(server.dir, `${api}-${Object.keys(how).length}`);
    await server.post(`/${api}`, "thread" in how ? how : { once });
    await eventually("its process ends", async () => {
      // "thread" ends one of the two threads with the request that it takes next.
      if ("thread" in how) await server.post(`/${api}`, {});
      return !server.workers().includes(pid);
    });
    await eventually("another serves", serves);
    expect(server.cli(["logs", api]).out).toContain("TimeoutError: too late");
  });
});

it("only the lying worker has broken the protocol", () => {
  for (const kind of KINDS) expect(server.cli(["logs", kind]).out).not.toContain("which broke the protocol");
});

describe("an answer that the worker did not check", () => {
  const ask = async (payload: Record<string, unknown>) => {
    const { status, text } = await readStream(`${server.baseUrl}/unchecked`, payload);
    return { status, text };
  };

  it.each([
    ["a header with a line break", { headers: { "x-a": "1\r\nb: 2" } }],
    ["a line break in a header of a stream", { stream: true, headers: { "x-a": "1\r\nb: 2" } }],
    ["a line break in a header of a long answer", { bytes: 400_000, headers: { "x-a": "1\r\nb: 2" } }],
    ["an invalid status", { status: 1000 }],
    ["a status of 1xx", { stream: true, status: 101 }],
    ["bytes that are not a RESULT", { garbage: true }],
    ["a fault that is not JSON", { fault: true }],
  ])("affects only its own request: %s", async (_, wrong) => {
    const [fine, failed, alsoFine] = await Promise.all([ask({}), ask(wrong), ask({})]);
    expect(failed.status).toBe(500);
    expect(JSON.parse(failed.text)).toMatchObject({ code: "prediction_failed" });
    expect([fine, alsoFine]).toEqual([1, 2].map(() => ({ status: 200, text: "x" })));
  });
});
