/** What a gateway gets after its first snapshot: only what changes, whatever else there is. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RoutePublisher } from "../../../src/apis/publish-routes.ts";
import {
  type ApiRoute,
  type KeyRoute,
  keyRouteSchema,
  type RefusedRoute,
  type RouteSnapshot,
} from "../../../src/contracts/routes.ts";
import { RouteTable } from "../../../src/gateway/replicas/route-table.ts";
import { eventually } from "../../harness/eventually.ts";
import { route } from "../../harness/routes.ts";

const key = (id: string, more: Partial<KeyRoute> = {}): KeyRoute => ({
  ...{ id, sha256: `of-${id}`, scope: "predict", api: null, created_time: "" },
  ...{ rate: null, expires_time: null, revoked_time: null },
  ...more,
});
const ADMIN = key("admin-token");
const routesOf = (apis: ApiRoute[], keys: KeyRoute[] = []) => {
  const all = { keys: [ADMIN, ...keys], has_keys: keys.length > 0 };
  return { apis, splitters: [], ...all };
};

let directory: string;
let file: string;
let publisher: RoutePublisher;
let table: RouteTable;
let stream: ServerResponse | undefined;
let unsubscribe = () => {};
let refused: readonly RefusedRoute[] = [];
/** All that the gateway got. */
let sent: string[] = [];
let isLost = false;

/** The controller's part: sends the whole snapshot, then each change. */
const controller = createServer((request, response) => {
  if (request.method === "GET") {
    const send = (line: string) => {
      if (isLost) return;
      sent.push(line);
      response.write(line);
    };
    stream = response;
    send(publisher.whole);
    unsubscribe = publisher.subscribe("g", send);
    return;
  }
  let text = "";
  request.on("data", (data) => (text += String(data)));
  request.on("end", () => {
    const { refused: items, ...stamp } = JSON.parse(text) as RouteSnapshot & { refused: RefusedRoute[] };
    refused = items;
    publisher.applied("g", stamp, items);
    response.end("{}");
  });
});

const connect = async () => {
  const pool = { kill: () => {}, onDeadline: () => {}, replace: () => {}, wake: () => {}, broken: () => {} };
  table = new RouteTable({ file, internalSocket: join(directory, "c.sock"), pool });
  await table.start();
  await eventually("it is connected", () => table.connections > 0 && table.isReady);
};
/** A busy machine may take longer than the publisher waits. */
const allApplied = () =>
  eventually("all is applied", () =>
    publisher.waitUntilApplied().then(
      () => true,
      () => false,
    ),
  );
const publishFirst = async (keys: KeyRoute[] = []) => {
  publisher.publish(routesOf([route("a")], keys));
  await connect();
  await allApplied();
};
const opens = (id: string) => table.principal(`of-${id}`)?.id === id;
const change = () => JSON.parse(sent.at(-1)!) as Record<string, unknown>;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "quern-routes-"));
  file = join(directory, "routes.json");
  [sent, refused] = [[], []];
  publisher = new RoutePublisher(file, 1, () => {});
  await new Promise<void>((resolve) => controller.listen(join(directory, "c.sock"), resolve));
});
afterEach(async () => {
  vi.restoreAllMocks();
  unsubscribe();
  await table.stop();
  stream?.destroy();
  await new Promise((resolve) => controller.close(resolve));
  await publisher.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** How many characters were parsed and made as JSON, and how many keys were read, during `work`. */
async function costOf(work: () => Promise<void>) {
  const [parse, stringify] = [JSON.parse, JSON.stringify];
  const cost = { parsed: 0, made: 0, keys: 0 };
  const safeParse = keyRouteSchema.safeParse;
  const spies = [
    vi.spyOn(JSON, "parse").mockImplementation((text, ...rest) => {
      cost.parsed += text.length;
      return parse(text, ...rest);
    }),
    vi.spyOn(JSON, "stringify").mockImplementation((value, ...rest) => {
      const text = stringify(value, ...(rest as [])) as string | undefined;
      cost.made += text?.length ?? 0;
      return text!;
    }),
    vi.spyOn(keyRouteSchema, "safeParse").mockImplementation((value, ...rest) => {
      cost.keys++;
      return safeParse(value, ...rest);
    }),
  ];
  await work();
  for (const spy of spies) spy.mockRestore();
  return cost;
}

it("a change of a capability or a route costs the same with two keys and with 20,000", async () => {
  await publishFirst();
  for (const count of [2, 20_000]) {
    const keys = Array.from({ length: count }, (_, at) => key(`k-${at}`));
    publisher.publish(routesOf([route("a")], keys));
    await allApplied();
    expect(opens(`k-${count - 1}`)).toBe(true);
    const capability = await costOf(async () => {
      publisher.publishCapabilities([{ sha256: `c-${count}`, api: "a" }]);
      await allApplied();
    });
    const status = await costOf(async () => {
      publisher.publish(routesOf([route("a", { status: `s-${count}` })], keys));
      await allApplied();
    });
    // A few characters more are of others in this process. 20,000 keys are more than two million.
    for (const { keys, parsed, made } of [capability, status])
      expect([keys, parsed < 2_000, made < 4_000]).toEqual([0, true, true]);
    expect(table.capabilityOwner(`c-${count}`)).toBe("a");
  }
  const inFile = JSON.parse(readFileSync(file, "utf8")) as RouteSnapshot;
  expect([inFile.keys.length, inFile.apis[0]!.status]).toEqual([20_001, "s-20000"]);
});

it("a new key costs the same with 20,000 others, and so does a controller that starts", async () => {
  const keys = Array.from({ length: 20_000 }, (_, at) => key(`k-${at}`));
  await publishFirst(keys);
  const created = await costOf(async () => {
    publisher.publish(routesOf([route("a")], [...keys, key("new")]));
    await allApplied();
  });
  expect([created.keys, created.parsed < 2_000, opens("new")]).toEqual([2, true, true]);
  publisher = new RoutePublisher(file, 2, () => {});
  const connected = await costOf(async () => {
    stream!.destroy();
    await eventually("it has connected again", () => table.connections === 2);
    publisher.publish(routesOf([route("a")], [...keys, key("new")]));
    await allApplied();
  });
  expect([connected.keys, opens("new")]).toEqual([0, true]);
});

it("a key that is revoked, changed or new reaches a gateway alone", async () => {
  publisher.publish(routesOf([route("a")], [key("old"), key("stays"), key("changes")]));
  await connect();
  const version = table.keysVersion;
  publisher.publish(routesOf([route("a")], [key("stays"), key("changes", { scope: "submit" }), key("new")]));
  await allApplied();
  expect(["old", "stays", "changes", "new"].map(opens)).toEqual([false, true, true, true]);
  expect(table.principal("of-changes")!.permissions[0]!.scope).toBe("submit");
  expect(table.keysVersion).not.toBe(version);
  const gone = ["old", "changes"];
  expect(change().keys).toEqual({ gone, put: [key("changes", { scope: "submit" }), key("new")] });
  expect(change()).not.toHaveProperty("routes");
});

it("a changed key that cannot be read permits nothing", async () => {
  const bad = key("k", { rate: { requests: 0.5, seconds: 1 } });
  publisher.publish(routesOf([route("a")], [key("k")]));
  await connect();
  for (let i = 0; i < 2; i++) {
    publisher.publish(routesOf([route("a")], [bad]));
    await allApplied();
    expect(opens("k")).toBe(false);
    expect(publisher.warnings).toEqual([expect.stringMatching(/^k keeps .*rate.requests/)]);
  }
  publisher.publish(routesOf([route("a")], [key("k")]));
  await allApplied();
  expect([opens("k"), publisher.warnings]).toEqual([true, []]);
});

it("a route that a gateway cannot read keeps its last good one, and stays reported, while other lists change", async () => {
  publisher.publish(routesOf([route("bad"), route("good")]));
  await connect();
  const bad = { ...route("bad"), capacity: "many" };
  const [start] = sent;
  const { epoch, version } = JSON.parse(start!) as RouteSnapshot;
  const send = async (more: object, since: number) => {
    const line = { epoch, version: since + 1, since, has_keys: false, ...more };
    stream!.write(`${JSON.stringify(line)}\n`);
  };
  await send({ routes: { apis: [bad, route("good", { status: "new" })], splitters: [] } }, version);
  await send({ capabilities: [{ sha256: "c", api: "good" }] }, version + 1);
  await eventually("it is applied", () => table.capabilityOwner("c") === "good");
  const statusOf = (name: string) => {
    const found = table.endpoints.find(`/${name}`);
    return found?.kind === "RealtimeAPI" ? found.pool.route.status : undefined;
  };
  expect([statusOf("bad"), statusOf("good")]).toEqual(["live", "new"]);
  await eventually("it is reported", () => refused.length === 1 && refused[0]!.name === "bad");
  // The first key closes the kept route, also if its change has no routes.
  await send({ has_keys: true, keys: { gone: [], put: [key("first")] } }, version + 2);
  await eventually("it is applied", () => opens("first"));
  const needsKey = ["bad", "good"].map((name) => table.endpoints.find(`/${name}`)!.address.needs_key);
  expect([...needsKey, table.endpoints.asksForKeys]).toEqual([true, false, true]);
});

it("a gateway that has missed a change gets the whole snapshot again", async () => {
  publisher.publish(routesOf([route("a")], [key("k")]));
  await connect();
  isLost = true;
  publisher.publish(routesOf([route("a")], []));
  isLost = false;
  publisher.publishCapabilities([{ sha256: "c", api: "a" }]);
  await allApplied();
  expect([opens("k"), table.connections]).toEqual([false, 2]);
});

it("changes of capabilities in quick succession are one write of the file", async () => {
  publisher.publish(routesOf([route("a")]));
  await connect();
  const inFile = () => (JSON.parse(readFileSync(file, "utf8")) as RouteSnapshot).version;
  const before = inFile();
  for (let at = 0; at < 20; at++) publisher.publishCapabilities([{ sha256: `c-${at}`, api: "a" }]);
  expect(inFile()).toBe(before);
  await allApplied();
  expect(inFile()).toBe(before + 20);
  // What waits is written when the controller stops.
  publisher.publishCapabilities([]);
  await publisher.stop();
  expect(inFile()).toBe(before + 21);
});
