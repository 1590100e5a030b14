/** Whoever sends many long reads keeps others waiting for one of them at most. */
import { EventEmitter } from "node:events";
import { Hono } from "hono";
import { beforeEach, describe, expect, test } from "vitest";
import type { Keys } from "../../src/access/keys.ts";
import type { Jobs } from "../../src/batch/jobs.ts";
import type { JobRow } from "../../src/batch/records/job-rows.ts";
import { SLICE_MS } from "../../src/contracts/limits/event-loop.ts";
import type { OpenStreams } from "../../src/control/answers/open-streams.ts";
import { seriesRoutes } from "../../src/control/dashboard/series.ts";
import { type VersionRoutesDeps, versionRoutes } from "../../src/control/dashboard/versions.ts";
import { failuresResponse } from "../../src/control/jobs/job-failures.ts";
import { ReadsInTurn } from "../../src/control/requests/reads-in-turn.ts";
import type { SeriesDeps } from "../../src/series/read-series.ts";

/** Knows every key, by its text. */
const KEYS = { areAny: true, find: (key: string) => ({ id: key, scope: "view" }) } as unknown as Keys;

class Client extends EventEmitter {
  destroyed = false;
  leave(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

/** Asks for a path, as the holder of a key. */
const asked = (app: Hono) => (path: string, key: string) =>
  app.request(
    path,
    { headers: { "x-api-key": key } },
    { incoming: { socket: {}, headers: {} }, outgoing: new Client() },
  );

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

  test("have their turn with the series, too", async () => {
    const order: string[] = [];
    const reads = new ReadsInTurn(KEYS);
    const both = new Hono();
    both.get("/held", (c) =>
      reads.take(c, async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        order.push("held");
        return c.text("read");
      }),
    );
    both.route("/", seriesRoutes({ reads, series: {} as SeriesDeps }));
    both.onError((error, c) => {
      order.push(error.message.slice(0, 6));
      return c.text("", 400);
    });
    const env = () => ({ incoming: { socket: {}, headers: {} }, outgoing: new Client() });
    await Promise.all(["/held", "/-/series?metric=speed"].map((path) => both.request(path, {}, env())));
    expect(order).toEqual(["held", "metric"]);
  });

  test("that take long pass their turn on to other senders, and to their own only at the end", async () => {
    const order: string[] = [];
    const reads = new ReadsInTurn(KEYS);
    const both = new Hono();
    both.get("/long/:n", (c) =>
      reads.take(c, async (pass) => {
        for (let piece = 0; piece < 3; piece++) {
          order.push(`${c.req.param("n")}${piece}`);
          await new Promise((resolve) => setTimeout(resolve, 2 * SLICE_MS));
          await pass();
        }
        return c.text("read");
      }),
    );
    both.get("/short", (c) =>
      reads.take(c, async () => {
        order.push("short");
        return c.text("read");
      }),
    );
    const ask = asked(both);
    await Promise.all([ask("/long/a", "many"), ask("/long/b", "many"), ask("/short", "one")]);
    expect(order).toEqual(["a0", "short", "a1", "a2", "b0", "b1", "b2"]);
  });

  test("of failures have their turn, too, and go on without it while they wait for a store", async () => {
    const order: string[] = [];
    const reads = new ReadsInTurn(KEYS);
    async function* waiting() {
      order.push("begins");
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      order.push("ends");
      yield* [];
    }
    const records = { failures: async () => ({ failures: waiting(), nextCursor: null }) };
    const deps = { jobs: { records } as unknown as Jobs, lists: {} as OpenStreams, reads };
    const both = new Hono();
    both.get("/failures", (c) => failuresResponse(c, deps, {} as JobRow));
    both.get("/other", (c) =>
      reads.take(c, async () => {
        order.push("other");
        return c.text("read");
      }),
    );
    const ask = asked(both);
    const all = ["/failures", "/failures", "/failures"].map((path) => ask(path, "many"));
    const answers = await Promise.all([...all, ask("/other", "one")]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(order.slice(0, order.indexOf("other"))).toEqual(["begins"]);
    expect(order.slice(-3)).toEqual(["ends", "ends", "ends"]);
  });

  test.each(["versions", "diff"])(
    "of %s go on without their turn while a project is fetched",
    async (what) => {
      const order: string[] = [];
      const deployed = {
        get: async () => ({ api_id: "one" }),
        history: async () => [{ api_id: "one", deployed_time: "t0" }],
        projectOf: async () => "project",
        configText: async () => "{}",
      };
      const of = async () => {
        order.push("begins");
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        order.push("ends");
        return [];
      };
      const reads = new ReadsInTurn(KEYS);
      const shown = { ofVersion: async () => "{}" };
      const deps = { apis: { deployed }, keys: KEYS, projectLists: { of }, shown, reads };
      const both = new Hono();
      both.route("/", versionRoutes(deps as unknown as VersionRoutesDeps));
      both.get("/other", (c) =>
        reads.take(c, async () => {
          order.push("other");
          return c.text("read");
        }),
      );
      const ask = asked(both);
      const answers = await Promise.all([ask(`/-/apis/iris/${what}`, "many"), ask("/other", "one")]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(order).toEqual(["begins", "other", "ends"]);
    },
  );

  test("of a client that has left are not made", async () => {
    const client = new Client();
    const first = read("many", "/apis");
    const second = read("many", "/apis", client);
    client.leave();
    await Promise.all([first, second]);
    expect(begun).toHaveLength(1);
  });
});
