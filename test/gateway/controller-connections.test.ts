/** Which requests are with the controller at once, and which wait. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FORWARDED_AT_ONCE_MAX } from "../../src/contracts/limits/requests.ts";
import {
  type ControllerConnection,
  ControllerConnections,
} from "../../src/gateway/controller-connections.ts";

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
  });
  afterEach(async () => {
    vi.useRealTimers();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    rmSync(directory, { recursive: true });
  });

  /** Asks so many times, and returns those that have a place. */
  async function ask(sender: string, times: number): Promise<ControllerConnection[]> {
    const taken: ControllerConnection[] = [];
    for (let each = 0; each < times; each++)
      connections
        .connect(sender, () => false)
        .then((connection) => taken.push(connection!))
        .catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 100));
    return taken;
  }

  it("of one sender leave places to others, and of several too", async () => {
    const greedy = await ask("greedy", 400);
    expect(greedy.length).toBeGreaterThanOrEqual(FORWARDED_AT_ONCE_MAX / 4);
    expect(await ask("second", 400)).not.toHaveLength(0);
    expect(await ask("third", 1)).toHaveLength(1);
  });

  it("say that the server is busy if their turn does not come in time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    const ask = () => connections.connect("greedy", () => false);
    const asked = Array.from({ length: FORWARDED_AT_ONCE_MAX }, ask);
    vi.advanceTimersByTime(60_000);
    const [ended] = (await Promise.allSettled(asked)).filter(({ status }) => status === "rejected");
    expect(ended).toMatchObject({
      reason: { code: "server_unavailable", message: expect.stringContaining("the server is busy") },
    });
  });

  it("all go on as places are free, those of others in turn with those of a sender with many", async () => {
    const greedy = await ask("greedy", 400);
    const others = await Promise.all(["b", "c", "d"].map((sender) => ask(sender, 20)));
    expect(others.flat().length).toBeLessThan(60);
    for (let round = 0; round < 100 && others.flat().length < 60; round++) {
      for (const connection of [...others.flat(), ...greedy]) connection.answered();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(others.map(({ length }) => length)).toEqual([20, 20, 20]);
    expect(greedy.length).toBeLessThan(200);
  });
});
