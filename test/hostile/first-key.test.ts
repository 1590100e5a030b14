/** Requests without a key, while there is none, when the first key is made. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { STREAM_POLL_MS } from "../../src/contracts/limits/responses.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO, ENDLESS } from "../harness/projects.ts";
import { RawRequests } from "../harness/raw-requests.ts";
import { TestServer } from "../harness/server.ts";

/** The endless predictor sends pieces at this interval. */
const PIECE_MS = 100;
const JOB = { workers: 1, item_list: { items: [1], batch_size: 1 } };

const server = new TestServer();
let raw: RawRequests;
beforeAll(async () => {
  await server.start();
  server.deploy({
    "quern.yaml": `
- {name: echo, predictor: {path: predictor.py}}
- {name: open, predictor: {path: endless.py}, networking: {auth: none}}
- {name: slow, predictor: {path: endless.py}}
- {name: jobs, kind: BatchAPI, predictor: {path: endless.py}}
- {name: open-jobs, kind: BatchAPI, predictor: {path: endless.py}, networking: {auth: none}}
- {name: gone, kind: BatchAPI, predictor: {path: endless.py}}
`,
    "predictor.py": ECHO,
    "endless.py": ENDLESS,
  });
  raw = new RawRequests(server.baseUrl);
});
afterAll(async () => {
  raw?.close();
  await server.stop();
});

interface Followed {
  status: number;
  isOver: () => boolean;
  /** Events that have come by now. */
  pieces: () => number;
  leave: () => void;
}

/** A streamed answer, and whether it has ended. */
const follow = (path: string, body?: string) =>
  new Promise<Followed>((resolve, reject) => {
    const headers = { accept: "text/event-stream", "content-type": "application/json" };
    const method = body === undefined ? "GET" : "POST";
    const ask = httpRequest(server.baseUrl + path, { method, headers }, (answer: IncomingMessage) => {
      let isOver = false;
      let text = "";
      answer.on("error", () => {}).on("close", () => (isOver = true));
      answer.on("data", (data) => (text += String(data)));
      const pieces = () => text.split("data:").length - 1;
      resolve({ status: answer.statusCode!, isOver: () => isOver, pieces, leave: () => answer.destroy() });
    });
    ask.on("error", reject).end(body);
  });
const submit = async (api: string) =>
  ((await (await server.post(`/${api}`, JOB)).json()) as { job_id: string }).job_id;
/**
 * Its head was accepted, and the beginning of its body is sent. The returned function sends the rest, and resolves to
 * the status.
 */
const begin = async (path: string, payload: unknown, headers: Record<string, string> = {}) => {
  const body = JSON.stringify(payload);
  const head = { "content-type": "application/json", "content-length": body.length, connection: "close" };
  const request = raw.send(`POST ${path}`, { ...head, expect: "100-continue", ...headers });
  expect(await request.firstStatus()).toBe("100");
  request.socket.write(body.slice(0, 3));
  return () => {
    request.socket.write(body.slice(3));
    return request.lastStatus();
  };
};

it("the first key ends streams and refuses later bodies, except for APIs that need no key", async () => {
  const [closed, open] = [await submit("jobs"), await submit("open-jobs")];
  const closing = await Promise.all([
    follow(`/jobs/${closed}/events`),
    follow(`/jobs/${closed}/logs?follow=true`),
    follow("/slow", '{"stream": 1}'),
  ]);
  const staying = await Promise.all([follow(`/open-jobs/${open}/events`), follow("/open", '{"stream": 1}')]);
  expect([...closing, ...staying].map(({ status }) => status)).toEqual(Array(5).fill(200));
  const refused = [
    await begin("/echo", { a: 1 }),
    await begin("/jobs", JOB),
    await begin(`/jobs/${closed}/redrive`, { error: "x" }),
  ];

  const { key } = JSON.parse(server.cli(["-o", "json", "keys", "create", "--scope", "admin"]).out) as {
    key: string;
  };
  expect(await Promise.all(refused.map((finish) => finish()))).toEqual(["401", "401", "401"]);
  await eventually("what needs a key now has ended", () => closing.every(({ isOver }) => isOver()));
  const [, endless] = staying;
  const before = endless!.pieces();
  await eventually(
    "what needs no key goes on, for longer than the server takes to look at streams twice",
    () => endless!.pieces() - before > (2 * STREAM_POLL_MS) / PIECE_MS,
  );
  expect(staying.map(({ isOver }) => isOver())).toEqual([false, false]);
  for (const { leave } of staying) leave();

  // A deleted API accepts no job from any caller.
  const authorization = `Bearer ${key}`;
  const late = await begin("/gone", JOB, { authorization });
  const deleted = await server.fetch("/-/apis/gone", { method: "DELETE", headers: { authorization } });
  expect([deleted.status, await late()]).toEqual([200, "404"]);
});

it("a new version that needs a key ends the streams of its API", async () => {
  const stream = await follow("/open", '{"stream": 1}');
  const late = await begin("/open", { a: 1 });
  server.deploy({
    "quern.yaml": "- {name: open, predictor: {path: endless.py}, networking: {auth: key}}",
    "endless.py": ENDLESS,
  });
  expect(await late()).toBe("401");
  await eventually("it has ended", () => stream.isOver());
});
