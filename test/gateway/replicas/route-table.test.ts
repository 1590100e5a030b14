/** How a gateway handles a snapshot that it cannot read: it serves the rest, and reports it to the controller. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoutePublisher } from "../../../src/apis/publish-routes.ts";
import { STREAM_POLL_MS } from "../../../src/contracts/limits/responses.ts";
import {
  type ApiRoute,
  isNewer,
  type RefusedRoute,
  type RouteSnapshot,
} from "../../../src/contracts/routes.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { RouteTable } from "../../../src/gateway/replicas/route-table.ts";
import { encodeJson, MESSAGE } from "../../../src/protocol/messages.ts";
import { eventually } from "../../harness/eventually.ts";
import { fakeWorker } from "../../harness/fake-worker.ts";
import { route } from "../../harness/routes.ts";

const snapshot = (epoch: number, version: number, apis: unknown[]) =>
  ({ epoch, version, apis, splitters: [], keys: [] }) as unknown as RouteSnapshot;

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-routes-"));
  file = join(directory, "routes.json");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("a gateway", () => {
  let table: RouteTable | undefined;
  let stream: ServerResponse | undefined;
  const applied: { epoch: number; version: number; refused: RefusedRoute[] }[] = [];
  const controller = createServer((request, response) => {
    if (request.url!.startsWith("/routes?")) {
      response.flushHeaders();
      stream = response;
      return;
    }
    let text = "";
    request.on("data", (data) => (text += String(data)));
    request.on("end", () => {
      applied.push(JSON.parse(text));
      response.end("{}");
    });
  });
  beforeEach(async () => {
    applied.length = 0;
    stream = undefined;
    await new Promise<void>((resolve) => controller.listen(join(directory, "c.sock"), resolve));
  });
  afterEach(async () => {
    await table?.stop();
    stream?.destroy();
    await new Promise((resolve) => controller.close(resolve));
  });
  const start = async () => {
    const pool = {
      kill: () => {},
      onDeadline: () => {},
      replace: () => {},
      wake: () => {},
      broken: () => {},
    };
    table = new RouteTable({ file, internalSocket: join(directory, "c.sock"), pool });
    await table.start();
    await eventually("it listens to the controller", () => stream !== undefined);
    return table;
  };
  const send = async (value: unknown) => {
    const before = applied.length;
    stream!.write(`${typeof value === "string" ? value : JSON.stringify(value)}\n`);
    await eventually("it has confirmed", () => applied.length > before);
    return applied.at(-1)!;
  };
  const statusOf = (name: string) => {
    const found = table!.endpoints.find(`/${name}`);
    return found?.kind === "RealtimeAPI" ? found.pool.route.status : undefined;
  };

  it("serves an API by its last good route if it cannot read the new one, and others by their new ones", async () => {
    await start();
    await send(snapshot(1, 1, [route("bad"), route("good")]));
    const confirmed = await send(
      snapshot(1, 2, [
        route("bad", { timeout_ms: 2009.9999999999998, status: "new" }),
        route("good", { status: "new" }),
        route("more"),
      ]),
    );
    expect([statusOf("bad"), statusOf("good"), statusOf("more")]).toEqual(["live", "new", "live"]);
    expect(confirmed).toMatchObject({ epoch: 1, version: 2, refused: [{ name: "bad" }] });
    expect(confirmed.refused[0]!.detail).toContain("timeout_ms");
    expect((await send(snapshot(1, 3, [route("bad", { status: "mended" })]))).refused).toEqual([]);
    expect(statusOf("bad")).toBe("mended");
  });

  it("ends the last requests of a deleted API: each at its deadline, and a stream with its key", async () => {
    const socket = join(directory, "w.sock");
    const worker = await fakeWorker(socket, "ready", (type, id) =>
      type === MESSAGE.PREDICT && id === 1
        ? [[MESSAGE.STREAM, 0, id, encodeJson({ format: "text", content_type: null })]]
        : [],
    );
    const process = { worker_id: "w", pid: 0, process_start: "0", note: join(directory, "w.note") };
    const replicas = [{ ...process, socket, token: "t" }];
    let isStillOpen = true;
    const submit = () => {
      const found = table!.endpoints.find("/api");
      if (found?.kind !== "RealtimeAPI") throw new Error("the API is not there");
      const arrived = { startedMs: performance.now(), requestId: "r", parts: [], bodyDone: () => {} };
      const prediction = new PredictionRequest(
        new ServerResponse(new IncomingMessage(new Socket())),
        { ...arrived, isStillOpen: () => isStillOpen },
        undefined,
        false,
      );
      found.pool.submit(prediction);
      return prediction;
    };
    await start();
    await send(
      snapshot(1, 1, [route("api", { replicas, parallel: 2, is_blocking: false, timeout_ms: 60_000 })]),
    );
    const [stream, call] = [submit(), submit()];
    await eventually("it streams", () => stream.stream !== undefined);
    await send(snapshot(1, 2, []));
    table!.expire(performance.now() + STREAM_POLL_MS);
    expect([stream.isAnswered, call.isAnswered, table!.underWay]).toEqual([false, false, 2]);
    isStillOpen = false;
    table!.expire(performance.now() + 2 * STREAM_POLL_MS);
    expect([stream.isAnswered, call.isAnswered, table!.underWay]).toEqual([true, false, 1]);
    table!.expire(performance.now() + 60_000);
    expect([call.isAnswered, table!.underWay]).toEqual([true, 0]);
    expect(table!.expire(performance.now() + 180_000)).toBe(false);
    worker.close();
  });

  it("keeps serving after an unreadable snapshot, and does not confirm it", async () => {
    await start();
    await send(snapshot(1, 1, [route("good")]));
    for (const nonsense of ["{", "null", '{"version":"two"}']) {
      const confirmed = await send(nonsense);
      expect(confirmed).toMatchObject({ version: 1, refused: [{ name: "the snapshot" }] });
      expect(statusOf("good")).toBe("live");
    }
  });

  it("starts from a file with a route that it cannot read", async () => {
    writeFileSync(file, JSON.stringify(snapshot(1, 1, [route("bad", { capacity: 0.5 }), route("good")])));
    await start();
    expect([table!.isReady, statusOf("good"), statusOf("bad")]).toEqual([true, "live", undefined]);
  });

  it("accepts snapshots of the next controller, however many the previous one had published", async () => {
    writeFileSync(file, JSON.stringify(snapshot(1, 2_000_000, [route("old")])));
    await start();
    expect(await send(snapshot(2, 1, [route("new")]))).toMatchObject({ epoch: 2, version: 1 });
    expect([statusOf("old"), statusOf("new")]).toEqual([undefined, "live"]);
    // A former controller's, late.
    expect(await send(snapshot(1, 3_000_000, [route("old")]))).toMatchObject({ epoch: 2, version: 1 });
    expect(isNewer({ epoch: 1, version: 2 }, { epoch: 1, version: 1 })).toBe(true);
  });

  it("accepts the snapshots of a controller over the file of a release without epochs", async () => {
    const { epoch: _, ...old } = snapshot(1, 7_000_123, [route("old")]);
    writeFileSync(file, JSON.stringify(old));
    await start();
    expect(statusOf("old")).toBe("live");
    expect(await send(snapshot(8, 1, [route("new")]))).toMatchObject({ epoch: 8, version: 1 });
  });
});

describe("the publisher of routes", () => {
  const routesOf = (...apis: ApiRoute[]) => ({ apis, splitters: [], keys: [], has_keys: false });
  const published = () => (JSON.parse(readFileSync(file, "utf8")) as RouteSnapshot).apis;

  it("publishes nothing that a gateway could not read, and reports it", () => {
    const refused: RefusedRoute[] = [];
    const first = new RoutePublisher(file, 1, (item) => refused.push(item));
    first.publish(routesOf(route("a"), route("b")));
    // Also a controller that starts has the last good one, from the file.
    for (const publisher of [first, new RoutePublisher(file, 2, (item) => refused.push(item))]) {
      for (let i = 0; i < 2; i++)
        publisher.publish(routesOf(route("a", { capacity: 1e300 }), route("b", { status: "new" })));
      expect(published()).toEqual([route("a"), route("b", { status: "new" })]);
      expect(publisher.warnings).toEqual([expect.stringMatching(/a keeps its last good route: capacity/)]);
    }
    expect(refused.map(({ name }) => name)).toEqual(["a", "a"]);
  });

  it("closes a kept route when the first key is made, and no other", () => {
    const key = (id: string) => ({
      ...{ id, sha256: id, scope: "admin" as const, api: null, created_time: "" },
      ...{ rate: null, expires_time: null, revoked_time: null },
    });
    const missing = [{ name: "a", detail: "its row cannot be read" }];
    const publisher = new RoutePublisher(file, 1, () => {});
    const publish = (apis: ApiRoute[], ids: string[]) => {
      const keys = { keys: ids.map(key), has_keys: ids.length > 1 };
      publisher.publish({ apis, splitters: [], ...keys }, apis.length === 2 ? [] : missing);
      return published().map(({ needs_key }) => needs_key);
    };
    expect(publish([route("a"), route("b")], ["admin"])).toEqual([false, false]);
    expect(publish([route("b")], ["admin"])).toEqual([false, false]);
    expect(publish([route("b")], ["admin", "first"])).toEqual([true, false]);
    expect(publish([route("b")], ["admin", "first"])).toEqual([true, false]);
    // An API that was open although there were keys has `auth: none`.
    expect(publish([route("a"), route("b")], ["admin", "first"])).toEqual([false, false]);
    expect(publish([route("b")], ["admin", "first"])).toEqual([false, false]);
  });

  it("waits for a gateway that has read the file, and is not connected yet", async () => {
    const publisher = new RoutePublisher(file, 1, () => {});
    publisher.publish(routesOf(route("a")));
    let isEverywhere = false;
    const waitUntilApplied = publisher.waitUntilApplied(1).then(() => (isEverywhere = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isEverywhere).toBe(false);
    publisher.subscribe("g", () => {});
    publisher.applied("g", { epoch: 1, version: 1 }, []);
    await waitUntilApplied;
  });

  it("ignores a gateway's confirmation of another epoch", async () => {
    const publisher = new RoutePublisher(file, 2, () => {});
    publisher.subscribe("g", () => {});
    publisher.publish(routesOf(route("a")));
    publisher.applied("g", { epoch: 1, version: 999_999 }, []);
    let isEverywhere = false;
    const waitUntilApplied = publisher.waitUntilApplied().then(() => (isEverywhere = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isEverywhere).toBe(false);
    publisher.applied("g", { epoch: 2, version: 1 }, [{ name: "a", detail: "no" }]);
    await waitUntilApplied;
    expect(publisher.warnings).toEqual(["a keeps its last good route: no"]);
  });
});
