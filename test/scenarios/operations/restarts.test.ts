/** Restarts of a server whose listening socket somebody else holds, as systemd does. */
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { hasNginx, Nginx } from "../../harness/nginx.ts";
import { NotifySocket } from "../../harness/notify-socket.ts";
import { openFiles, processes } from "../../harness/processes.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";
import { tlsGet } from "../../harness/tls-get.ts";

interface Handle {
  fd: number;
  getsockname(name: { port?: number }): number;
  close(): void;
}
const REQUESTS = 2_000;
const RESTARTS = 5;

/** A bound socket. Servers that inherit it listen; this process keeps it open between them. */
function bind(host = "127.0.0.1"): { handle: Handle; port: number } {
  const { _createServerHandle } = net as unknown as {
    _createServerHandle: (host: string, port: number, family: number) => Handle;
  };
  const handle = _createServerHandle(host, 0, 4);
  const name: { port?: number } = {};
  handle.getsockname(name);
  return { handle, port: name.port! };
}

const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, "latin1");

describe("a server whose socket is passed to it", () => {
  let server: TestServer;
  let sockets: Handle[] = [];
  let nginx: Nginx | undefined;
  let notify: NotifySocket | undefined;
  afterEach(async () => {
    await nginx?.stop();
    notify?.close();
    nginx = notify = undefined;
    await server.stop();
    for (const socket of sockets.splice(0)) socket.close();
  });
  const pass = (names: string, ...hosts: string[]) => {
    const bound = names.split(":").map((_, at) => bind(hosts[at]));
    sockets = bound.map(({ handle }) => handle);
    server = new TestServer();
    server.passed = { handles: sockets, names };
    return bound.map(({ port }) => port);
  };

  it.each([1, 2])("fails no new connection over five restarts, with %i gateways", async (gateways) => {
    const [port] = pass("quern.socket");
    const args = ["--gateways", String(gateways)];
    await server.start({}, args);
    server.deploy(project(ECHO));
    const load = new SteadyLoad(`http://127.0.0.1:${port}/echo`, 8, {}, 0, false);
    await restartUnder(load, args);
  });

  it.skipIf(!hasNginx)("fails none of 2,000 requests behind nginx over five restarts", async () => {
    const [port] = pass("quern.socket");
    await server.start();
    server.deploy(project(ECHO));
    nginx = new Nginx(join(server.dir, "nginx"));
    const front = `http://127.0.0.1:${await freePort()}`;
    await nginx.start(
      `upstream quern { server 127.0.0.1:${port}; keepalive 8; }
server {
  listen ${new URL(front).host};
  location / {
    proxy_pass http://quern; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host localhost;
  }
}`,
      `${front}/-/livez`,
    );
    await restartUnder(new SteadyLoad(`${front}/echo`, 8));
  });

  /** Restarts it evenly among the requests. Each must succeed. */
  async function restartUnder(load: SteadyLoad, args: string[] = []): Promise<void> {
    const answered = (count: number) =>
      eventually(`${count} requests have responses`, () => load.answers.length >= count);
    for (let restart = 1; restart <= RESTARTS; restart++) {
      await answered((REQUESTS * restart) / (RESTARTS + 1));
      await server.stopProcesses();
      await server.start({}, args);
    }
    await answered(REQUESTS);
    const failed = (await load.stop()).filter(({ status }) => status !== 200);
    expect(failed.slice(0, 3)).toEqual([]);
  }

  it("has a control listener too, over TLS, and names the addresses of its options", async () => {
    const [main, control] = pass("quern.socket:control");
    const { cert, key } = makeCertificate(server.dir);
    await server.start({}, ["--tls-cert", cert, "--tls-key", key, "--listen", "quern.example:443"]);
    expect(server.baseUrl).toBe(`https://127.0.0.1:${control}`);
    await eventually("the line", () =>
      server.stderr.includes(
        `quern is ready at https://quern.example:443, its control plane at https://127.0.0.1:${control}\n`,
      ),
    );
    const status = async (port: number, path: string) =>
      (await tlsGet(`https://127.0.0.1:${port}${path}`, cert)).status;
    expect(await status(main!, "/-/livez")).toBe(200);
    expect(await status(main!, "/-/healthz")).toBe(404);
    expect(await status(control!, "/-/healthz")).toBe(401);
  });

  it("is refused one that other machines reach, as long as there is no key", async () => {
    pass("quern.socket", "0.0.0.0");
    await expect(server.start()).rejects.toThrow("refusing to listen on 0.0.0.0");
  });

  it("is refused one that is no TCP socket", async () => {
    server = new TestServer();
    const local = net.createServer().listen(join(server.dir, "local.sock"));
    await once(local, "listening");
    server.passed = { handles: [(local as unknown as { _handle: object })._handle], names: "quern.socket" };
    await expect(server.start()).rejects.toThrow("cannot listen on descriptor 3 of LISTEN_FDS");
    local.close();
  });

  it("ignores the variables of another process, and says so", async () => {
    server = new TestServer();
    await server.start({ LISTEN_FDS: "1", LISTEN_PID: "1" });
    expect(server.stderr).toContain("LISTEN_FDS is ignored: it is meant for 1 (LISTEN_PID)");
  });

  it("gives none of the variables and no socket to those of its children that do not listen", async () => {
    pass("quern.socket");
    const name = `@quern-test-restarts-${process.pid}`;
    notify = await NotifySocket.open(name);
    const hears = (message: string) =>
      eventually(`systemd hears ${message}`, () => notify!.messages.includes(message));
    await server.start({ NOTIFY_SOCKET: name, WATCHDOG_USEC: "1000000" });
    server.deploy(project(ECHO));
    const socket = readlinkSync(`/proc/self/fd/${sockets[0]!.fd}`);
    const children = processes().filter(({ ppid }) => ppid === server.parent!.pid);
    expect(children).toHaveLength(3);
    for (const { pid } of [...children, { pid: server.workers()[0]! }]) {
      expect(environmentOf(pid)).not.toMatch(/(^|\0)(LISTEN_|NOTIFY_|WATCHDOG_)/);
      expect([pid, openFiles(pid).includes(socket)]).toEqual([pid, pid === server.child("gateway")]);
    }
    await hears("READY=1");
    await hears("WATCHDOG=1");
    await server.stopProcesses();
    await hears("STOPPING=1");
  });
});
