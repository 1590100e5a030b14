/** Responses that clients do not read: a gateway holds a bounded part of them. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BodyBudget } from "../../../src/access/body-budget.ts";
import type { NextTurn } from "../../../src/base/loop/turns.ts";
import type { Forwarded } from "../../../src/contracts/forwarded.ts";
import { LATE_AT_ONCE_MAX } from "../../../src/contracts/limits/requests.ts";
import {
  UNREAD_ANSWERS_BYTES_MAX,
  UNREAD_FORWARDED_BYTES,
  UNTAKEN_MS,
  UNTAKEN_POLL_MS,
} from "../../../src/contracts/limits/responses.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { UnreadAnswers, unreadAnswers } from "../../../src/gateway/answers/unread-answers.ts";
import { ControllerConnections } from "../../../src/gateway/controller-connections.ts";
import { Listener } from "../../../src/gateway/door/listener.ts";
import { forward } from "../../../src/gateway/forward.ts";
import { eventually } from "../../harness/eventually.ts";

const AHEAD = 20;
const AT_ONCE: NextTurn = (next) => next();
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

  it("are counted while they are forwarded from the controller", async () => {
    const dir = mkdtempSync(join(tmpdir(), "quern-unread-"));
    const path = join(dir, "controller.sock");
    const controller = createHttpServer((_request, response) => response.end(Buffer.alloc(32 * 1024 * 1024)));
    await new Promise<void>((resolve) => controller.listen(path, resolve));
    const forwarded = {} as Forwarded;
    answer = (response) => {
      const options = {
        controller: new ControllerConnections(path),
        bodies: new BodyBudget({ most: 1_000_000, forSmall: 0, smallBytes: 0 }),
        sender: { name: "", isStranger: false },
        requestId: "r",
        forwarded,
        path: "/",
      };
      forward(response.req, response, options).catch(() => response.destroy());
    };
    const client = connect((ports.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    clients.push(client);
    // The first gets no answer, so the socket takes nothing of the second.
    client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2));
    const held = () => (unreadAnswers as unknown as { held: number }).held;
    await eventually("it is counted", () => held() > UNREAD_FORWARDED_BYTES);
    client.destroy();
    await eventually("it is forgotten", () => held() === 0);
    controller.closeAllConnections();
    controller.close();
    rmSync(dir, { recursive: true });
  });
});

/** A response of which `left` bytes are with this process, and `taken` bytes of its connection with the client. */
class Response extends EventEmitter {
  writableLength: number;
  readonly handle = { bytesWritten: 0, writeQueueSize: 0 };
  readonly req: { socket: object };
  destroyed = false;

  constructor(remoteAddress: string, left: number, waiting = left) {
    super();
    this.writableLength = left;
    const destroy = () => {
      this.destroyed = true;
      this.emit("close");
    };
    this.req = { socket: { remoteAddress, writableLength: waiting, _handle: this.handle, destroy } };
  }
}

describe("of unread responses", () => {
  const MOST = 1600;
  const asResponse = (response: Response) => response as unknown as ServerResponse;
  let unread: UnreadAnswers;

  beforeEach(() => {
    unread = new UnreadAnswers(MOST, undefined, AT_ONCE);
  });

  function add(count: number, address: string, bytes: number): Response[] {
    return Array.from({ length: count }, () => {
      const response = new Response(address, bytes);
      unread.add(asResponse(response));
      return response;
    });
  }

  const closed = (responses: Response[]) =>
    responses.flatMap(({ destroyed }, index) => (destroyed ? [index] : []));

  it("those of whoever holds most are closed, the oldest first", () => {
    const readers = add(4, "192.0.2.1", 100);
    const flood = add(20, "192.0.2.2", 100);
    expect([closed(readers), closed(flood)]).toEqual([[], [0, 1, 2, 3, 4, 5, 6, 7]]);
  });

  it("those of which the client takes something are closed last", () => {
    const ours = add(16, "192.0.2.1", 100);
    ours[0]!.handle.bytesWritten = 1;
    ours[1]!.writableLength = 50;
    add(2, "192.0.2.1", 100);
    expect(closed(ours)).toEqual([1, 2]);
    for (const response of ours) response.handle.bytesWritten += 1;
    unread.add(asResponse(ours[3]!));
    for (const response of add(3, "192.0.2.1", 100)) expect(response.destroyed).toBe(false);
  });

  it("the oldest that stand still are closed, if nobody holds much", () => {
    const all = Array.from({ length: 16 }, (_, n) => add(1, `192.0.2.${n}`, 100)[0]!);
    all[0]!.handle.bytesWritten = 1;
    expect([closed(add(1, "192.0.2.16", 100)), closed(all)]).toEqual([[], [1]]);
  });

  it("one that is not complete counts for what its source may hold too", () => {
    const all = new UnreadAnswers(1_000_000, undefined, AT_ONCE);
    const source = { readableEnded: false, readableLength: 0 };
    const response = asResponse(new Response("192.0.2.1", 100));
    all.add(response, source as IncomingMessage);
    expect(all).toMatchObject({ held: 100 + UNREAD_FORWARDED_BYTES });
    source.readableEnded = true;
    all.add(response);
    expect(all).toMatchObject({ held: 100 });
  });

  it("one that is not complete counts for its file, if files are few", () => {
    const all = new UnreadAnswers(1_000_000, 4, AT_ONCE);
    const responses = Array.from({ length: 5 }, () => new Response("192.0.2.1", 100));
    const source = { readableEnded: false, readableLength: 0 } as IncomingMessage;
    for (const response of responses) all.add(asResponse(response), source);
    expect(closed(responses)).toEqual([0, 1]);
  });

  it("those that were read since make room", () => {
    const all = add(16, "192.0.2.1", 100);
    for (const response of all) response.writableLength = 0;
    expect([closed(add(16, "192.0.2.1", 100)), closed(all)]).toEqual([[], []]);
    expect(all.map((response) => response.listenerCount("close"))).toEqual(all.map(() => 0));
  });

  it("those whose time is over together are closed a few in each turn, and no longer counted at once", () => {
    const turns: (() => void)[] = [];
    unread = new UnreadAnswers(1_000_000, undefined, (next) => turns.push(next));
    const all = add(LATE_AT_ONCE_MAX + 1, "192.0.2.1", 1);
    unread.check(performance.now() + UNTAKEN_MS);
    expect([closed(all).length, turns.length]).toEqual([0, 1]);
    turns.shift()!();
    expect([closed(all).length, turns.length]).toEqual([LATE_AT_ONCE_MAX, 1]);
    turns.shift()!();
    expect([closed(all).length, turns.length]).toEqual([LATE_AT_ONCE_MAX + 1, 0]);
  });

  it("one whose client takes nothing is closed after a minute, however little all hold", () => {
    const [stuck, slow] = [...add(1, "192.0.2.1", 100), ...add(1, "192.0.2.1", 100)];
    // Its turn on the connection has not come.
    const behind = new Response("192.0.2.1", 100, 0);
    unread.add(asResponse(behind));
    const startMs = performance.now();
    for (let ms = 0; ms <= 2 * UNTAKEN_MS; ms += UNTAKEN_POLL_MS) {
      slow!.handle.bytesWritten += 1;
      unread.check(startMs + ms);
      expect(stuck!.destroyed).toBe(ms >= UNTAKEN_MS);
    }
    expect(closed([slow!, behind])).toEqual([]);
  });
});
