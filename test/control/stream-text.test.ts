/** Answers that are made while they are sent: whoever leaves, at whatever moment, leaves nothing open behind. */
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { describe, it } from "vitest";
import { streamText } from "../../src/control/http.ts";
import { eventually } from "../harness/eventually.ts";

describe("a streamed answer", () => {
  it.each([
    ["before it was ready", 40, 10],
    ["before its first piece", 0, 10],
    ["in the middle of it", 0, 90],
  ])("to a client that leaves %s is given up", async (_, readyMs, leavesMs) => {
    let open = 0;
    let asked = 0;
    async function* pieces() {
      open++;
      try {
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 30));
          yield "piece\n";
        }
      } finally {
        open--;
      }
    }
    const app = new Hono();
    app.get("/", async (c) => {
      await new Promise((resolve) => setTimeout(resolve, readyMs));
      asked++;
      return streamText(c, pieces(), "text/plain");
    });
    const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    for (let i = 0; i < 5; i++) {
      const client = connect(port, "127.0.0.1");
      client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await new Promise((resolve) => setTimeout(resolve, leavesMs));
      client.destroy();
    }
    await eventually("all were asked", () => asked === 5);
    await eventually("nothing is open", () => open === 0, 5_000);
    server.close();
  });
});
