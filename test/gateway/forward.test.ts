/** Bodies of requests that wait for their turn at the controller. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BodyBudget } from "../../src/access/body-budget.ts";
import { FORWARDED_WAITING_BODY_BYTES, SMALL_BODY_BYTES } from "../../src/contracts/limits/requests.ts";
import { sendError } from "../../src/gateway/answers/send-error.ts";
import { forward } from "../../src/gateway/forward.ts";
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
      const sender = String(request.headers["x-sender"]);
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
