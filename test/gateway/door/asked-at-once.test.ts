/** What an open connection holds of its requests. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SLICE_MS } from "../../../src/contracts/limits/event-loop.ts";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../../../src/contracts/limits/requests.ts";
import { AskedAtOnce, followedResponse } from "../../../src/gateway/door/asked-at-once.ts";
import { eventually } from "../../harness/eventually.ts";
import { countTurns } from "../../harness/turns.ts";

const GET = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const COUNT = REQUESTS_OF_A_CONNECTION_MAX;

/** Long enough that other connections should have the event loop. */
function takeSlice(): void {
  const endMs = performance.now() + SLICE_MS;
  while (performance.now() < endMs);
}

describe("a connection", () => {
  let asked: AskedAtOnce;
  let server: Server;
  let client: Socket;
  let responses: ServerResponse[];

  beforeEach(async () => {
    [asked, responses] = [new AskedAtOnce(), []];
    server = createServer({ ServerResponse: followedResponse(asked) }, (request, response) => {
      asked.take(request, response);
      responses.push(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  });
  afterEach(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });

  const held = (socket: Socket) =>
    (asked as unknown as { asked: WeakMap<Socket, { last: unknown; earlier?: Set<unknown> }> }).asked.get(
      socket,
    );

  it("holds nothing of a request after its response", async () => {
    client.write(GET);
    await eventually("the request", () => responses.length === 1);
    const { socket } = responses[0]!.req;
    expect(held(socket)).toMatchObject({ last: responses[0] });
    expect(asked.use(socket)).toBe("busy");
    responses[0]!.end();
    await eventually("the end of the response", () => held(socket)!.last === undefined);
    expect(asked.use(socket)).toBe("idle");
  });

  it("holds the last of pipelined requests until all have their responses", async () => {
    client.write(GET.repeat(3));
    await eventually("the requests", () => responses.length === 3);
    const { socket } = responses[0]!.req;
    responses[0]!.end();
    responses[1]!.end();
    await eventually("two responses", () => responses[1]!.closed);
    expect(held(socket)).toMatchObject({ last: responses[2] });
    expect(asked.use(socket)).toBe("busy");
    responses[2]!.end();
    await eventually("the third", () => held(socket)!.last === undefined);
    client.write(GET);
    await eventually("another request", () => responses.length === 4);
    expect(held(socket)).toMatchObject({ last: responses[3] });
  });

  it("sends responses that have waited for an earlier one in several turns of the event loop, in order", async () => {
    let received = "";
    client.on("data", (data) => (received += String(data)));
    client.write(GET.repeat(COUNT));
    await eventually("the requests", () => responses.length === COUNT);
    const [first, ...others] = responses as [ServerResponse, ...ServerResponse[]];
    for (const [n, response] of others.entries()) {
      response.once("finish", takeSlice);
      response.end(`<${n}>`);
    }
    const all = new Promise((resolve) => others.at(-1)!.once("finish", resolve));
    const { turns } = await countTurns(() => {
      first.end();
      return all;
    });
    // It was one.
    expect(turns).toBeGreaterThan(COUNT / 4);
    await eventually("all of them", () => received.includes(`<${COUNT - 2}>`));
    expect(received.match(/<\d+>/g)).toEqual(others.map((_, n) => `<${n}>`));
  });

  it("answers no later request before those that wait for their turn", async () => {
    let received = "";
    client.on("data", (data) => (received += String(data)));
    client.write(GET.repeat(3));
    await eventually("the requests", () => responses.length === 3);
    for (const [n, response] of responses.entries()) {
      response.once("finish", takeSlice);
      if (n > 0) response.end(`<${n}>`);
    }
    responses[0]!.end("<0>");
    client.write(GET);
    await eventually("the last request", () => responses.length === 4);
    responses[3]!.end("<3>");
    await eventually("all of them", () => received.includes("<3>"));
    expect(received.match(/<\d>/g)).toEqual(["<0>", "<1>", "<2>", "<3>"]);
  });
});
