/** Bodies of requests that wait for their turn at the controller. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { FORWARDED_WAITING_BODY_BYTES, SMALL_BODY_BYTES } from "../../src/contracts/limits/requests.ts";
import { sendError } from "../../src/gateway/answers/send-error.ts";
import { forward, isLarge } from "../../src/gateway/forward.ts";
import { eventually } from "../harness/eventually.ts";

describe("the bodies of requests that wait for the controller", () => {
  let server: Server;
  let bodies: BodyBudget;
  let giveUp: (() => void)[];
  const abort = new AbortController();

  beforeEach(async () => {
    giveUp = [];
    // Enough for two of them, and not for three.
    bodies = new BodyBudget({
      most: 3 * FORWARDED_WAITING_BODY_BYTES,
      forSmall: 8,
      smallBytes: SMALL_BODY_BYTES,
    });
    const connect = () => new Promise<undefined>((resolve) => giveUp.push(() => resolve(undefined)));
    const controller = { connect } as never;
    server = createServer((request, response) => {
      const sender = { name: String(request.headers["x-sender"]), isStranger: false };
      const options = { controller, bodies, sender, requestId: "id", forwarded: {} as never, path: "/jobs" };
      forward(request, response, options).catch((error: unknown) => sendError(response, error, "id"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
    abort.abort();
  });

  function send(sender: string): Promise<Response> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const body = new ReadableStream({ start: (to) => to.enqueue(Buffer.from("{")) });
    const options = { method: "POST", body, headers: { "x-sender": sender }, duplex: "half" } as RequestInit;
    return fetch(url, { ...options, signal: abort.signal });
  }

  it("count as if all of what Node keeps had arrived, to their sender, until the turn comes", async () => {
    const waiting = [send("one"), send("two")];
    for (const each of waiting) each.catch(() => {});
    await eventually("both wait", () => giveUp.length === 2);
    const refused = await send("one");
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("queue_full");
    for (const each of giveUp.splice(0)) each();
    expect((await waiting[0]!).status).toBe(503);
    const later = send("one");
    later.catch(() => {});
    await eventually("a later one waits", () => giveUp.length === 1);
  });
});

describe("a request that asks whether to send its body, and sends it at once", () => {
  const BODY = Buffer.alloc(1024 * 1024, " ");
  let controller: Server;
  let gateway: Server;

  beforeEach(async () => {
    const bodies = new BodyBudget({ most: 2 ** 30, forSmall: 0, smallBytes: 0 });
    controller = createServer();
    await new Promise<void>((resolve) => controller.listen(0, "127.0.0.1", resolve));
    gateway = createServer().on("checkContinue", (request, response) => {
      const socket = connect((controller.address() as AddressInfo).port, "127.0.0.1");
      const connections = { connect: async () => ({ socket, answered: () => {} }) } as never;
      const rest = { requestId: "id", forwarded: {} as never, path: "/jobs" };
      forward(request, response, {
        controller: connections,
        bodies,
        sender: { name: "one", isStranger: false },
        ...rest,
      }).catch((error: unknown) => sendError(response, error, "id"));
    });
    await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => {
    for (const server of [gateway, controller]) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** The first line of the last response; undefined if the client could not write on, and so did not read it. */
  async function send(): Promise<string | undefined> {
    const client = connect((gateway.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    let received = "";
    client.on("data", (data) => (received += String(data)));
    const head = `POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${BODY.length}\r\n\r\n`;
    client.write(Buffer.concat([Buffer.from(head), BODY]));
    const isLast = /HTTP\/1\.1 (?!100).*/;
    await eventually("the response", () => client.destroyed || isLast.test(received), 10_000);
    client.destroy();
    return isLast.exec(received)?.[0].trim();
  }

  it("gets the controller's refusal", async () => {
    controller.on("checkContinue", (_, response: ServerResponse) => {
      response.writeHead(404, { connection: "close", "content-length": 0 }).end();
    });
    const responses = new Set<string | undefined>();
    for (let sent = 0; sent < 50; sent++) responses.add(await send());
    responses.delete(undefined);
    expect([...responses]).toEqual(["HTTP/1.1 404 Not Found"]);
  });

  it("gets its body to a controller that wants it", async () => {
    controller.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
      response.writeContinue();
      let bytes = 0;
      request.on("data", (part: Buffer) => (bytes += part.length));
      request.on("end", () => response.writeHead(bytes === BODY.length ? 201 : 400).end());
    });
    expect(await send()).toBe("HTTP/1.1 201 Created");
  });
});

it.each([
  ["no body", {}, undefined, false],
  ["a small one", { "content-length": String(SMALL_BODY_BYTES) }, undefined, false],
  ["a longer one", { "content-length": String(SMALL_BODY_BYTES + 1) }, undefined, true],
  ["one of unknown length", { "transfer-encoding": "chunked" }, undefined, true],
  ["a small one in chunks that was collected", { "transfer-encoding": "chunked" }, [Buffer.alloc(9)], false],
] as const)("tells by its body whether a request is large: %s", (_, headers, body, expected) => {
  expect(isLarge({ headers }, body)).toBe(expected);
});
