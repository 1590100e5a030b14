/** docs/contract/explain.md: why a job waits for its store or its queue, each situation made for real. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serverOver } from "../../harness/answering-stores.ts";
import { findingOf, said } from "../../harness/explained.ts";
import type { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload[0] == "bad": raise ValueError("no good")
        return payload
`;
const LINE = '{"a":1}\n';
/** Several segments of batches. */
const BODY = Buffer.from(LINE.repeat(600_000));
/** One part of the file comes at a time, slowly, once this is set. */
let isSlow = false;
/** The answers to reading, by bucket. */
const FAULTS: Record<string, { status: number; code: string }> = {
  away: { status: 503, code: "SlowDown" },
  closed: { status: 403, code: "AccessDenied" },
  none: { status: 404, code: "NoSuchBucket" },
};
let lists = 0;

function listing(): string {
  return `<?xml version="1.0"?><ListBucketResult><Name>b</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>in.jsonl</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e"</ETag><Size>${BODY.length}</Size></Contents></ListBucketResult>`;
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const bucket = /^\/(\w+)/.exec(request.url!)?.[1];
  // The submission finds its files; after that the bucket is removed.
  if (request.url!.includes("list-type") && (bucket !== "none" || lists++ === 0))
    return void response.end(listing());
  // Submissions find the file; reading it fails.
  const fault = FAULTS[bucket ?? ""];
  if (fault !== undefined && request.method === "GET")
    return void response.writeHead(fault.status).end(errorOf(fault.code));
  const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? ["", "0", BODY.length - 1];
  const part = BODY.subarray(Number(from), Number(to) + 1);
  const headers = {
    etag: '"e"',
    "content-length": part.length,
    "content-range": `bytes ${from}-${Number(from) + part.length - 1}/${BODY.length}`,
    "last-modified": new Date(0).toUTCString(),
  };
  response.writeHead(request.headers.range === undefined ? 200 : 206, headers);
  if (request.method === "HEAD") return void response.end();
  setTimeout(() => response.end(part), isSlow ? 1_500 : 0);
}

const errorOf = (code: string) =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`;

describe("the explanation of a job", () => {
  const store = createServer(answer);
  let server: TestServer;
  beforeAll(async () => {
    server = await serverOver(store);
    await server.start({ AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:9" });
    server.deploy({
      "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n",
      "p.py": PREDICTOR,
    });
  });
  afterAll(async () => {
    store.closeAllConnections();
    await server.stop();
    store.close();
  });
  const over = (path: string, batch_size = 10) =>
    server.submit("jobs", { workers: 1, delimited_files: { store_paths: [path], batch_size } });

  it("says that the store does not respond, and that it continues by itself", async () => {
    const job = await over("s3://away/in.jsonl");
    const finding = await findingOf(server, "store_unreachable", "jobs", job);
    expect(said(finding)).toMatch(/The store does not respond: the job waits for it[\s\S]*tries again/);
    await server.fetch(`/jobs/${job}`, { method: "DELETE" });
  });

  it("says that the store denied access", async () => {
    const job = await over("s3://closed/in.jsonl");
    const finding = await findingOf(server, "store_forbidden", "jobs", job);
    expect(finding).toMatchObject({ severity: "error", command: `quern job resume jobs ${job}` });
  });

  it("says that a bucket does not exist", async () => {
    const job = await over("s3://none/");
    expect((await findingOf(server, "bucket_missing", "jobs", job)).title).toBe("A bucket does not exist");
  });

  it("says that workers are idle because the store delivers too little", async () => {
    const job = await over("s3://bucket/in.jsonl", 1000);
    await findingOf(server, "reading_input", "jobs", job);
    isSlow = true;
    const finding = await findingOf(server, "starved", "jobs", job);
    expect(said(finding)).toMatch(
      /1 of 1 worker mostly idle, because the store delivers only [\d.]+ [kM]B\/s/,
    );
    isSlow = false;
    await server.fetch(`/jobs/${job}`, { method: "DELETE" });
  });

  it("says that messages wait for the dead letter queue", async () => {
    const queue_dead_letter_queue = { arn: "arn:aws:sqs:us-east-1:1:bad", max_receive_count: 1 };
    const items = { workers: 1, item_list: { items: ["bad"], batch_size: 1 }, queue_dead_letter_queue };
    const job = await server.submit("jobs", items);
    const finding = await findingOf(server, "messages_wait", "jobs", job);
    expect(said(finding)).toMatch(/1 message could not be sent[\s\S]*arn:aws:sqs:us-east-1:1:bad/);
  });
});
