/** Whoever sends many long reads keeps others waiting for one of them at most. */
import { EventEmitter } from "node:events";
import { Hono } from "hono";
import { beforeEach, describe, expect, test } from "vitest";
import type { Keys } from "../../src/access/keys.ts";
import { ReadsInTurn } from "../../src/control/requests/reads-in-turn.ts";

/** Knows every key, by its text. */
const KEYS = { areAny: true, find: (key: string) => ({ id: key, scope: "view" }) } as unknown as Keys;

class Client extends EventEmitter {
  destroyed = false;
  leave(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

describe("long reads", () => {
  let begun: string[];
  let running: number;
  let most: number;
  let app: Hono;

  beforeEach(() => {
    begun = [];
    running = most = 0;
    app = new Hono();
    const reads = new ReadsInTurn(KEYS);
    app.get("/:what", (c) =>
      reads.take(c, async () => {
        begun.push(`${c.req.header("x-api-key")} ${c.req.path}`);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve, 5));
        running--;
        return c.text("read");
      }),
    );
  });

  const read = (key: string, path: string, client = new Client()) =>
    app.request(
      path,
      { headers: { "x-api-key": key } },
      { incoming: { socket: {}, headers: {} }, outgoing: client },
    );

  test("are answered one at a time, each sender in turn", async () => {
    const many = Array.from({ length: 10 }, () => read("many", "/apis"));
    const one = read("one", "/applications");
    expect((await one).status).toBe(200);
    expect(begun.indexOf("one /applications")).toBeLessThanOrEqual(2);
    await Promise.all(many);
    expect(begun).toHaveLength(11);
    expect(most).toBe(1);
  });

  test("of a client that has left are not made", async () => {
    const client = new Client();
    const first = read("many", "/apis");
    const second = read("many", "/apis", client);
    client.leave();
    await Promise.all([first, second]);
    expect(begun).toHaveLength(1);
  });
});
