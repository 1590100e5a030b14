/** Responses that clients do not read: a gateway holds a bounded part of them. */
import type { ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UNREAD_ANSWERS_BYTES_MAX } from "../../../src/contracts/limits/responses.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { UnreadAnswers } from "../../../src/gateway/answers/unread-answers.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { eventually } from "../../harness/eventually.ts";

const AHEAD = 20;
const ANSWER = Buffer.alloc(256 * 1024);
const CONNECTIONS_HELD = Math.floor(UNREAD_ANSWERS_BYTES_MAX / ((AHEAD - 1) * (ANSWER.length + 1000)));

type Answer = (response: ServerResponse) => void;

const predict = (act: (prediction: PredictionRequest) => void) => (response: ServerResponse) => {
  const arrived = {
    startedMs: 0,
    requestId: "r",
    parts: [],
    bodyDone: () => {},
    isStillOpen: () => true,
  };
  act(new PredictionRequest(response, arrived, undefined, false));
};

describe("responses that clients do not read", () => {
  let ports: Server;
  let listener: Listener;
  const clients: Socket[] = [];
  let responses: ServerResponse[];
  let answer: Answer;

  beforeEach(async () => {
    responses = [];
    // The first response of a connection is never made, so the socket takes none of the others.
    const seen = new WeakSet<Socket>();
    listener = new Listener("parent", undefined, (request, response) => {
      responses.push(response);
      if (seen.has(request.socket)) answer(response);
      else seen.add(request.socket);
    });
    await listener.start();
    ports = createServer((socket) => listener.accept(socket));
    await new Promise<void>((resolve) => ports.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    ports.close();
    await listener.stop();
  });

  async function ask(): Promise<Socket> {
    const before = responses.length;
    const client = connect((ports.address() as AddressInfo).port, "127.0.0.1");
    clients.push(client.on("error", () => {}));
    client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(AHEAD));
    client.resume();
    await eventually("all requests are here", () => responses.length === before + AHEAD);
    return client;
  }

  it.each<[string, Answer]>([
    ["predictions", predict((prediction) => prediction.succeed(undefined, ANSWER))],
    [
      "predictions with a head",
      predict((prediction) => prediction.succeed({ status: 201, headers: [["a", "b"]] } as never, ANSWER)),
    ],
    [
      "the ends of streams",
      predict((prediction) => {
        prediction.beginStream({ format: "raw" }, () => {});
        prediction.stream!.write(ANSWER);
        prediction.endStream();
      }),
    ],
  ])("close the oldest connections beyond the limit: %s", async (_what, how) => {
    answer = how;
    for (let n = 0; n < CONNECTIONS_HELD; n++) await ask();
    expect(clients.filter(({ destroyed }) => destroyed)).toEqual([]);
    for (let n = 0; n < 4; n++) await ask();
    await eventually("the oldest is closed", () => clients[0]!.destroyed);
    const held = responses.filter(({ req }) => !req.socket.destroyed);
    const bytes = held.reduce((sum, { writableLength }) => sum + writableLength, 0);
    expect(bytes).toBeLessThanOrEqual(UNREAD_ANSWERS_BYTES_MAX);
    // Those that came last stay.
    expect(clients.slice(-4).filter(({ destroyed }) => destroyed)).toEqual([]);
  });

  it("are no longer counted after their connection has ended or after they were read", async () => {
    const unread = new UnreadAnswers(1_000_000);
    answer = (response) => {
      response.end("x".repeat(100));
      unread.add(response);
    };
    (await ask()).destroy();
    await eventually("it has left", () => responses.every(({ closed, destroyed }) => closed || destroyed));
    const reader = await ask();
    responses[AHEAD]!.end();
    await eventually("all are read", () => responses.at(-1)!.writableFinished);
    expect(reader.destroyed).toBe(false);
    expect(unread).toMatchObject({ held: 0, unread: new Map() });
  });
});
