/** Answers that are made while they are sent: a client that leaves at any moment leaves nothing open. */
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { describe, expect, it, vi } from "vitest";
import { setOnCut, streamText } from "../../src/control/answers/stream-text.ts";
import { eventually } from "../harness/eventually.ts";

const connections = (server: Server) =>
  new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));

describe("a streamed answer", () => {
  it.each([
    "before it was ready",
    "before its first piece",
    "in the middle of it",
    "while it has only empty pieces",
  ] as const)("ends if its client leaves %s", async (when) => {
    let open = 0;
    let begun = 0;
    let asked = 0;
    let hasLeft = Promise.resolve();
    async function* pieces() {
      open++;
      begun++;
      try {
        if (when === "before its first piece") await hasLeft;
        for (;;) {
          await nextTurn();
          yield when === "while it has only empty pieces" ? "" : "piece\n";
        }
      } finally {
        open--;
      }
    }
    const app = new Hono();
    app.get("/", async (c) => {
      asked++;
      if (when === "before it was ready") await hasLeft;
      return streamText(c, pieces(), "text/plain");
    });
    const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    for (let i = 1; i <= 5; i++) {
      let leave = () => {};
      hasLeft = new Promise<void>((resolve) => {
        leave = resolve;
      });
      const client = connect(port, "127.0.0.1");
      let text = "";
      client.on("data", (data) => (text += String(data)));
      client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await eventually("it is its moment", () => {
        if (when === "in the middle of it") return text.includes("piece\n");
        return when === "before it was ready" ? asked === i : begun === i;
      });
      client.destroy();
      await eventually("the server knows that it has left", async () => (await connections(server)) === 0);
      leave();
    }
    await eventually("nothing is open", () => open === 0);
    server.close();
  });

  it("is cut off by an error, of which one listener hears", async () => {
    const heard: unknown[] = [];
    const failed = new Error("the store is away");
    async function* pieces() {
      yield "piece\n";
      await nextTurn();
      throw failed;
    }
    const app = new Hono();
    app.use("*", async (c, next) => {
      setOnCut(c, (error) => heard.push(error));
      await next();
    });
    app.get("/", (c) => streamText(c, pieces(), "text/plain"));
    const printed = vi.spyOn(console, "error");
    const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    await expect(answer.text()).rejects.toThrow("terminated");
    expect(heard).toEqual([failed]);
    expect(printed).not.toHaveBeenCalled();
    printed.mockRestore();
    server.close();
  });
});
