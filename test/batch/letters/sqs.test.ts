/** A service of SQS that is not to be trusted: it decides neither where requests go nor what the server prints. */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { DeadLetter } from "../../../src/batch/letters/letters.ts";
import { Sqs } from "../../../src/batch/letters/sqs.ts";

const ARN = "arn:aws:sqs:us-east-1:000000000000:letters";
const BODY = '[{"bad":1}]';
const LETTER: DeadLetter = {
  ...{ message_id: "m", queue: ARN, job_id: "j", batch_index: 0, round: 0, first_item: null },
  ...{ body: Buffer.from(BODY), attributes_json: '{"batch_id":"b","error":"e"}', sent_time: "" },
};
const sent = (Id: string) => ({
  ...{ Id, MessageId: "m" },
  MD5OfMessageBody: createHash("md5").update(BODY).digest("hex"),
});

let asked: string[];
let other: Server;
let service: Server;
/** The ids that the service says it has taken. */
let taken: string[];

async function listening(answer: (operation: string) => object): Promise<Server> {
  const server = createServer((request, response) => {
    const operation = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "");
    response.setHeader("content-type", "application/x-amz-json-1.0");
    request.resume().on("end", () => response.end(JSON.stringify(answer(operation))));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

const addressOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

beforeEach(async () => {
  asked = [];
  taken = ["0"];
  other = await listening((operation) => {
    asked.push(`other ${operation}`);
    return {};
  });
  service = await listening((operation) => {
    asked.push(operation);
    return operation === "GetQueueUrl"
      ? { QueueUrl: `${addressOf(other)}/\u001b]0;owned\u0007` }
      : { Successful: taken.map(sent) };
  });
  vi.stubEnv("AWS_ENDPOINT_URL_SQS", addressOf(service));
  vi.stubEnv("AWS_ACCESS_KEY_ID", "a");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "b");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  for (const server of [other, service]) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

it("gets the messages itself, although it says that the queue is elsewhere, and nothing is printed", async () => {
  const printed = (["debug", "info", "log", "warn", "error"] as const).map((name) => vi.spyOn(console, name));
  expect(await new Sqs().send(ARN, [LETTER])).toEqual({ sent: [LETTER], refused: [] });
  expect(asked).toEqual(["GetQueueUrl", "SendMessageBatch"]);
  for (const spy of printed) expect(spy).not.toHaveBeenCalled();
});

it("cannot take messages that were not sent", async () => {
  taken = ["7", "x"];
  expect(await new Sqs().send(ARN, [LETTER])).toEqual({ sent: [], refused: [] });
});
