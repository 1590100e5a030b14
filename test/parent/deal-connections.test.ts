/** The dealer with gateways that do not respond, or end: child processes that answer each connection once. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONNECTIONS_QUEUED_MAX } from "../../src/contracts/limits/processes.ts";
import { ConnectionDealer } from "../../src/parent/deal-connections.ts";
import { INSIDE, openListeningSockets } from "../../src/parent/listening-sockets.ts";
import { eventually } from "../harness/eventually.ts";

/** Answers with its number and with the listener, and a ping with how many connections it has received. */
const GATEWAY = `
let received = 0;
process.on("message", (message, socket) => {
  if (message === "ping") process.send({ received });
  if (socket === undefined) return;
  received++;
  socket.on("error", () => {}).end(process.argv[1] + " " + message.listener);
});
process.send("ready");
`;
const LOOPBACK = { host: "127.0.0.1", port: 0 };

describe("connections to gateways that stop or end", () => {
  const directory = mkdtempSync(join(tmpdir(), "quern-test-dealer-"));
  let children: ChildProcess[];
  let ready: ChildProcess[];
  let clients: Socket[];
  let dealer: ConnectionDealer;
  let ports: number[];

  beforeEach(async () => {
    clients = [];
    children = [0, 1].map((name) =>
      spawn(process.execPath, ["-e", GATEWAY, `${name}`], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
    );
    await Promise.all(children.map((child) => once(child, "message")));
    ready = [...children];
    const sockets = await openListeningSockets(
      { listen: LOOPBACK, controlListen: undefined, tls: undefined, dataDir: directory },
      { main: undefined, control: undefined },
    );
    ports = [Number(new URL(sockets.mainUrl).port), sockets.apiPort];
    dealer = new ConnectionDealer(sockets.handles, { gateways: () => ready, count: 2, last: INSIDE });
    dealer.start();
  });
  afterEach(async () => {
    for (const client of clients) client.destroy();
    for (const child of children) child.kill("SIGKILL");
    await dealer.close();
    dealer.closeLast();
    await eventually("both have ended", () => children.every(({ connected }) => !connected));
    rmSync(directory, { recursive: true, force: true });
  });

  /** Resolves to the answers once all clients are connected. Those of clients that get none never resolve. */
  async function open(count: number, listener = 0): Promise<Promise<string>[]> {
    const opened = Array.from({ length: count }, () => connect(ports[listener]!, "127.0.0.1"));
    clients.push(...opened);
    const answers = opened.map(
      (client) =>
        new Promise<string>((resolve, reject) => {
          let text = "";
          client.on("data", (piece) => (text += String(piece))).on("error", reject);
          client.on("end", () => resolve(text));
        }),
    );
    await Promise.all(opened.map((client) => once(client, "connect")));
    return answers;
  }

  /** How many connections this process holds that it has accepted. */
  const accepted = (before: number) =>
    files() - before - clients.filter(({ destroyed }) => !destroyed).length;

  it("wait in the kernel beyond the places of each, and all of them get an answer", async () => {
    for (const child of children) child.kill("SIGSTOP");
    const before = files();
    const answers = await open(3 * CONNECTIONS_QUEUED_MAX);
    await eventually("the queues are full", () => accepted(before) >= 2 * CONNECTIONS_QUEUED_MAX);
    // Another listener has places of its own, so the loop has had its turn when this one is here.
    const inside = await open(1, INSIDE);
    await eventually("it is accepted", () => accepted(before) > 2 * CONNECTIONS_QUEUED_MAX);
    expect(accepted(before)).toBe(2 * CONNECTIONS_QUEUED_MAX + 1);
    children[0]!.kill("SIGKILL");
    children[1]!.kill("SIGCONT");
    expect(await Promise.all(answers)).toEqual(answers.map(() => "1 0"));
    expect(await inside[0]).toBe(`1 ${INSIDE}`);
    await eventually("the parent has closed its copies", () => accepted(before) <= 0);
  });

  it("do not delay the answer to a ping", async () => {
    const [gateway] = children;
    ready = [gateway!];
    gateway!.kill("SIGSTOP");
    const before = files();
    const answers = await open(CONNECTIONS_QUEUED_MAX);
    await eventually("the queue is full", () => accepted(before) === CONNECTIONS_QUEUED_MAX);
    const pong = once(gateway!, "message");
    gateway!.send("ping");
    gateway!.kill("SIGCONT");
    const [{ received }] = (await pong) as [{ received: number }];
    expect(received).toBeLessThanOrEqual(2);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["0 0"]));
  });

  it("go to the other one while theirs does not respond", async () => {
    children[0]!.kill("SIGSTOP");
    const answers = await open(40);
    const all: string[] = [];
    for (const answer of answers) answer.then((text) => all.push(text));
    await eventually("the other has answered its half", () => all.length >= 20);
    ready = [children[1]!];
    dealer.deal();
    await eventually(
      "it has answered all but the one that the first is being given",
      () => all.length === 39,
    );
    expect(new Set(all)).toEqual(new Set(["1 0"]));
    children[0]!.kill("SIGCONT");
    expect((await Promise.all(answers)).filter((text) => text === "0 0")).toHaveLength(1);
  });

  it("are received by gateways before the listener is closed for good", async () => {
    for (const child of children) child.kill("SIGSTOP");
    const before = files();
    const answers = await open(40);
    await eventually("they are accepted", () => accepted(before) === 40);
    let isClosed = false;
    const closing = dealer.close().then(() => {
      isClosed = true;
    });
    await open(1, INSIDE);
    expect(isClosed).toBe(false);
    for (const child of children) child.kill("SIGCONT");
    await closing;
    const received = children.map(async (child) => {
      const pong = once(child, "message");
      child.send("ping");
      return ((await pong) as [{ received: number }])[0].received;
    });
    expect((await Promise.all(received)).reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(40);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["0 0", "1 0"]));
  });

  it("do not keep the listener from closing if no gateway responds", async () => {
    for (const child of children) child.kill("SIGSTOP");
    const before = files();
    await open(1);
    await eventually("it is accepted", () => accepted(before) === 1);
    await dealer.close();
    expect(clients[0]!.destroyed).toBe(false);
  });

  it("wait in the kernel while there is no gateway", async () => {
    ready = [];
    dealer.deal();
    const before = files();
    const answers = await open(40);
    expect(accepted(before)).toBe(0);
    ready = children;
    dealer.deal();
    const all = await Promise.all(answers);
    expect([...new Set(all)].sort()).toEqual(["0 0", "1 0"]);
  });

  it("whose clients have left are handed over too, and leave nothing behind", async () => {
    for (const child of children) child.kill("SIGSTOP");
    const before = files();
    await open(2 * CONNECTIONS_QUEUED_MAX);
    await eventually("the queues are full", () => accepted(before) === 2 * CONNECTIONS_QUEUED_MAX);
    for (const client of clients) client.resetAndDestroy();
    children[0]!.kill("SIGKILL");
    children[1]!.kill("SIGCONT");
    const answers = await open(1);
    expect(await answers[0]).toBe("1 0");
    await eventually("the parent has closed its copies", () => accepted(before) <= 0);
  });
});

function files(): number {
  return readdirSync("/proc/self/fd").length;
}
