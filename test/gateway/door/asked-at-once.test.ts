/** What an open connection holds of its requests. */
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AskedAtOnce, followedResponse } from "../../../src/gateway/door/asked-at-once.ts";
import { eventually } from "../../harness/eventually.ts";

const GET = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

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
});
