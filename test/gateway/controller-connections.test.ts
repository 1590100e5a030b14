/** Which requests are with the controller at once, and which wait. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FORWARDED_AT_ONCE_MAX, FORWARDED_LARGE_AT_ONCE_MAX } from "../../src/contracts/limits/requests.ts";
import {
  type ControllerConnection,
  ControllerConnections,
} from "../../src/gateway/controller-connections.ts";

/** The places of a sender that is alone. */
const OF_ONE = FORWARDED_AT_ONCE_MAX / 4;

describe("requests to the controller", () => {
  let directory: string;
  let server: Server;
  let connections: ControllerConnections;
  let sockets: Socket[];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-places-"));
    sockets = [];
    server = createServer((socket) => sockets.push(socket.on("error", () => {})));
    const path = join(directory, "s");
    await new Promise<void>((resolve) => server.listen(path, resolve));
    connections = new ControllerConnections(path);
    vi.useFakeTimers({ toFake: ["setTimeout"] });
  });
  afterEach(async () => {
    vi.useRealTimers();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
  });

  /** Asks so many times. Returns those that have a place: more and more. */
  function ask(name: string, times: number, isStranger = false): ControllerConnection[] {
    const sender = { name, isStranger };
    const taken: ControllerConnection[] = [];
    for (let each = 0; each < times; each++)
      connections
        .connect(sender, () => false)
        .then((connection) => taken.push(connection!))
        .catch(() => {});
    return taken;
  }
  /** Timers are not real, so no place becomes free by itself. */
  async function until(isSo: () => boolean): Promise<void> {
    for (let turn = 0; turn < 10_000 && !isSo(); turn++) await nextTurn();
    expect(isSo()).toBe(true);
  }

  it("of one sender leave places to others, and of several too", async () => {
    const greedy = ask("greedy", 400);
    await until(() => greedy.length >= OF_ONE);
    const second = ask("second", 400);
    await until(() => second.length > 0);
    const third = ask("third", 1);
    await until(() => third.length === 1);
    expect(greedy.length + second.length).toBeLessThan(FORWARDED_AT_ONCE_MAX);
  });

  it("of one sender are few, as everybody waits for all that are with the controller", async () => {
    const [greedy, strangers] = [ask("greedy", 400), ask("address", 400, true)];
    await until(() => greedy.length >= OF_ONE && strangers.length > 0);
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    expect(greedy.length).toBe(OF_ONE);
    expect(strangers.length).toBeLessThanOrEqual(OF_ONE);
  });

  it("with large bodies have few places of their own, however many keys send them", async () => {
    const large: ControllerConnection[] = [];
    for (let key = 0; key < 10; key++)
      for (let each = 0; each < 40; each++)
        connections
          .connect({ name: `key ${key}`, isStranger: false }, () => false, true)
          .then((connection) => large.push(connection!))
          .catch(() => {});
    await until(() => large.length >= FORWARDED_LARGE_AT_ONCE_MAX / 2);
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    expect(large.length).toBeLessThanOrEqual(FORWARDED_LARGE_AT_ONCE_MAX);
    const short = ask("other", OF_ONE);
    await until(() => short.length === OF_ONE);
  });

  it("say that the server is busy if their turn does not come in time", async () => {
    const asked = Array.from({ length: FORWARDED_AT_ONCE_MAX }, () =>
      connections.connect({ name: "greedy", isStranger: false }, () => false),
    );
    vi.advanceTimersByTime(60_000);
    const [ended] = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
    expect(ended).toMatchObject({
      reason: { code: "server_unavailable", message: expect.stringContaining("the server is busy") },
    });
  });

  it("all go on as places are free, those of others in turn with those of a sender with many", async () => {
    const greedy = ask("greedy", 400);
    await until(() => greedy.length >= OF_ONE);
    const others = ["b", "c", "d"].map((sender) => ask(sender, 20));
    await until(() => others.every((taken) => taken.length > 0));
    await until(() => {
      for (const connection of [...others.flat(), ...greedy]) connection.answered();
      return others.flat().length === 60;
    });
    expect(greedy.length).toBeLessThan(200);
  });

  it("of callers without a key get every other turn, however many addresses they have", async () => {
    const strangers = Array.from({ length: 1_000 }, (_, n) => ask(`address ${n}`, 1, true));
    await until(() => strangers.flat().length >= OF_ONE);
    expect(strangers.flat().length).toBeLessThan(FORWARDED_AT_ONCE_MAX);
    const first = ask("key", 1);
    await until(() => first.length === 1);
    const many = ask("key", 200);
    await until(() => {
      for (const connection of [...many, ...first, ...strangers.flat()]) connection.answered();
      return many.length === 200;
    });
    expect(strangers.flat().length).toBeLessThan(300);
  });
});
