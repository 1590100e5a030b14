/** A worker that listens on a network, and strangers there (docs/worker-protocol.md#tls). */
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp, type Socket } from "node:net";
import { join } from "node:path";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterEach, expect, it } from "vitest";
import { WorkerConnection } from "../../src/protocol/worker-connection.ts";
import { makeCertificate } from "../harness/certificates.ts";
import { eventually } from "../harness/eventually.ts";
import { FaultyProxy } from "../harness/faulty-proxy.ts";
import { PredictingCaller, StartedWorker } from "../harness/started-worker.ts";

/** As STRANGERS_MAX of python/quern_runtime/strangers.py. */
const STRANGERS_MAX = 64;
/** A handshake, HELLO and the first prediction take 1,100 bytes to the worker, and 1,500 back. */
const CUTS = Array.from({ length: 24 }, (_, at) => 1 + at * 70);

let worker: StartedWorker;
const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
  worker.stop();
});

function stranger(): Socket {
  const socket = connectTcp(worker.port, "127.0.0.1").on("error", () => {});
  open.push(socket);
  return socket;
}

const body = Buffer.from('"hello"');

it("serves its callers while strangers hold connections, send garbage or shake hands slowly", async () => {
  worker = await StartedWorker.start("tls");
  const controller = await worker.ready();
  const silent = Array.from({ length: 3 * STRANGERS_MAX }, () => stranger());
  const garbage = Array.from({ length: 20 }, () => stranger());
  for (const socket of garbage) socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const slow = stranger();
  // A record of a handshake that says that 512 bytes follow.
  slow.write(Buffer.from([22, 3, 1, 2, 0, 1]));
  const gateway = await worker.call("gateway");
  for (let request = 0; request < 50; request++) {
    slow.write(Buffer.alloc(1));
    expect(String(await gateway.predict(body))).toBe('"hello"');
  }
  await eventually("the garbage has closed its connections", () => garbage.every((socket) => socket.closed));
  const areKept = () => silent.filter((socket) => !socket.closed).length <= STRANGERS_MAX;
  await eventually("few of those that are silent stay", areKept);
  expect([controller.isClosed, gateway.isClosed]).toEqual([false, false]);
});

it("closes connections that do not say hello, and does not count the time of its own predictions", async () => {
  const slow =
    "import time\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): time.sleep(payload)\n";
  const first =
    "import quern_runtime.strangers as s, quern_runtime.worker as w; s.HELLO_S = 0.3; w.IDLE_POLL_S = 0.1";
  worker = await StartedWorker.start("tls", slow, first);
  const controller = await worker.ready();
  const silent = stranger();
  await eventually("it is closed", () => silent.closed);
  const blocks = controller.predict(Buffer.from("1"));
  // It comes while the worker predicts, and takes longer than a stranger may.
  const late = worker.call("gateway");
  await blocks;
  expect(String(await (await late).predict(Buffer.from("0")))).toBe("null");
});

it("survives connections that are cut at any byte, in both directions", async () => {
  worker = await StartedWorker.start("tls");
  await worker.ready();
  const proxy = await FaultyProxy.open(worker.port);
  const address = worker.tlsAddress(Number(new URL(proxy.url).port));
  for (const kind of ["cut", "cut-request"] as const)
    for (const afterBytes of CUTS) {
      proxy.set({ kind, afterBytes, times: 1 });
      const caller = await PredictingCaller.open(address, "gateway").catch(() => undefined);
      await caller?.predict(body).catch(() => {});
      caller?.connection.close();
    }
  await proxy.close();
  const gateway = await worker.call("gateway");
  expect(String(await gateway.predict(body))).toBe('"hello"');
});

it("tells its token to nobody that cannot prove to be the worker", async () => {
  worker = await StartedWorker.start("tls");
  const files = makeCertificate(worker.directory);
  const other = createTlsServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) });
  let received = "";
  other.on("secureConnection", (socket) => socket.on("data", (data) => (received += String(data))));
  other.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  makeCertificate(worker.directory, "another");
  const attempts = [
    // Another certificate than the one that is trusted, and another name than the certificate's.
    worker.tlsAddress(port),
    { ...worker.tlsAddress(port), tls: { ca: readFileSync(files.cert, "utf8") }, serverName: "elsewhere" },
  ];
  const hello = { role: "gateway" as const, token: "f00d", epoch: 1 };
  const events = { expects: () => false, onMessage: () => {}, onClose: () => {} };
  for (const address of attempts)
    await expect(WorkerConnection.open(address, hello, events)).rejects.toThrow(/certificate|altnames/i);
  expect(received).toBe("");
  other.close();
});

it("is reached without TLS only on loopback", async () => {
  worker = await StartedWorker.start("tcp", undefined, "import sys; sys.argv[2] = 'tcp:0.0.0.0:1'");
  await eventually("it has ended", () => worker.process.exitCode === 64);
  expect(worker.output).toContain(
    "tcp: is for loopback only, because it is not encrypted; use tls:0.0.0.0:1",
  );
  const hello = { role: "gateway" as const, token: "f00d", epoch: 1 };
  const events = { expects: () => false, onMessage: () => {}, onClose: () => {} };
  const opened = WorkerConnection.open({ host: "10.1.2.3", port: 1 }, hello, events);
  await expect(opened).rejects.toThrow("needs TLS");
});

it("shows a renewed certificate to new connections, and keeps the former one if the new one is broken", async () => {
  worker = await StartedWorker.start("tls");
  const controller = await worker.ready();
  const file = (name: string) => join(worker.directory, name);
  const served = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connectTls({ host: "127.0.0.1", port: worker.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().fingerprint256);
        socket.destroy();
      });
      socket.on("error", reject);
    });
  const first = await served();
  copyFileSync(file("cert.pem"), file("former.pem"));
  writeFileSync(file("broken.pem"), "nothing");
  renameSync(file("broken.pem"), file("cert.pem"));
  expect(await served()).toBe(first);
  expect(worker.output).toContain("cannot be used, the former one stays");
  rmSync(file("key.pem"));
  makeCertificate(worker.directory);
  const second = await served();
  expect(second).not.toBe(first);
  expect(controller.isClosed).toBe(false);
  expect(String(await (await worker.call("gateway")).predict(body))).toBe('"hello"');
});
