/** Programs on the port where the command line expects its server: none of them gets the admin token or other data. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { proofOf } from "../../src/contracts/server-proof.ts";
import { eventually } from "../harness/eventually.ts";
import { killAll } from "../harness/processes.ts";
import { ECHO, project } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

describe("a program on the server's port", () => {
  const server = new TestServer();
  const impostors: (Server | HttpServer)[] = [];
  /** All that any of them has received. */
  let heard = "";
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO));
  });
  afterEach(() => {
    for (const impostor of impostors.splice(0)) impostor.close();
    heard = "";
  });
  afterAll(() => server.stop());

  const token = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const listening = async (impostor: Server | HttpServer, port = 0) => {
    impostors.push(impostor);
    await new Promise<void>((resolve, reject) => {
      impostor.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    return (impostor.address() as AddressInfo).port;
  };
  /** Answers each request like the server of an old release, or like any other program. */
  const other = (status: number, body: string, headers: Record<string, string> = {}) =>
    createHttpServer((request, response) => {
      heard += `${request.method} ${request.url} ${JSON.stringify(request.headers)}\n`;
      response.writeHead(status, headers);
      response.end(body);
    });
  /** Forwards every byte to the real server, and back. */
  const relay = () =>
    createServer((socket) => {
      const real = connect(Number(new URL(server.baseUrl).port), "127.0.0.1");
      socket.on("data", (chunk) => (heard += String(chunk)));
      socket.pipe(real).pipe(socket);
      for (const each of [socket, real]) each.on("error", () => {});
    });
  /** A command run beside the impostors, which live in this process. */
  const elsewhere = async (port: number, args: string[], env: NodeJS.ProcessEnv = {}) => {
    const dataDir = join(server.dir, "stale");
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(join(dataDir, "admin-token"), `${token()}\n`);
    writeFileSync(join(dataDir, "address"), `http://127.0.0.1:${port}\n`);
    return server.cliBeside(args, { QUERN_DATA_DIR: dataDir, ...env });
  };
  const refused = {
    code: 6,
    out: "",
    err: expect.stringContaining("is not the server of"),
  };

  it.each<[string, () => Server | HttpServer]>([
    ["answers everything with 200", () => other(200, '{"apis":[],"proof":"","applications":[]}')],
    ["answers 401 and asks for a key", () => other(401, "{}", { "www-authenticate": "Bearer" })],
    ["answers 404, as a server of an earlier release does", () => other(404, "{}")],
    ["redirects to the real server", () => other(307, "", { location: `${server.baseUrl}/-/apis` })],
    ["sends a forged proof", () => other(200, JSON.stringify({ proof: "0".repeat(64) }))],
    ["forwards everything to the real server", relay],
    ["speaks another protocol", () => createServer((socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"))],
    ["closes each connection", () => createServer((socket) => void socket.destroy())],
  ])("gets no token if it %s", async (_, impostor) => {
    const port = await listening(impostor());
    expect(await elsewhere(port, ["get"])).toMatchObject(refused);
    const named = await elsewhere(port, ["keys", "list"], { QUERN_HOST: `http://localhost:${port}` });
    expect(named).toMatchObject(refused);
    expect(heard).not.toContain(token());
    expect(heard).not.toContain("/-/keys");
  });

  it("gets no token by forwarding the challenge, even to a server at the same address", async () => {
    const nonces: string[] = [];
    const impostor = createHttpServer(async (request, response) => {
      heard += JSON.stringify(request.headers);
      nonces.push(request.url!);
      const answer = await (await server.fetch(request.url!)).text();
      response.setHeader("content-length", answer.length);
      response.end(answer);
    });
    const port = await listening(impostor);
    expect(await elsewhere(port, ["get"])).toMatchObject(refused);
    expect(nonces[0]).toMatch(/^\/-\/proof\?nonce=[0-9a-f]{64}$/);
    expect(heard).not.toContain(token());
  });

  it("gets no token from a running command after the server is killed and its port is taken", async () => {
    const victim = new TestServer();
    let watching: ReturnType<TestServer["startCli"]> | undefined;
    try {
      await victim.start();
      const port = Number(new URL(victim.baseUrl).port);
      const command = victim.startCli(["get", "-w"]);
      watching = command;
      await eventually("it has printed", () => command.out.includes("no apis"));
      const children = (["gateway", "controller"] as const).map((role) => victim.child(role));
      victim.parent!.kill("SIGKILL");
      killAll(children);
      await eventually("the port is free", () =>
        listening(other(200, '{"apis":[],"applications":[]}'), port).then(Boolean, () => false),
      );
      await command.ended;
      expect(existsSync(join(victim.dataDir, "address"))).toBe(true);
      expect(command.err).toMatch(/is not the server of|no server responds/);
      expect(heard).not.toContain("uthorization");
    } finally {
      watching?.process.kill("SIGKILL");
      await victim.stop();
    }
  });

  it("gets a request and a key only if the user names it", async () => {
    const port = await listening(other(200, '{"apis":[],"applications":[]}'));
    const env = { QUERN_HOST: `http://127.0.0.1:${port}`, QUERN_API_KEY: "quern_of-the-user" };
    expect((await elsewhere(port, ["get"], env)).code).toBe(0);
    expect(heard).toContain("Bearer quern_of-the-user");
    expect(heard).not.toContain(token());
  });

  it("cannot redirect: redirects are not followed, and paths stay on their server", async () => {
    const away = await listening(other(200, "{}"));
    const port = await listening(other(307, "", { location: `http://127.0.0.1:${away}/x` }));
    const env = { QUERN_HOST: `http://127.0.0.1:${port}`, QUERN_API_KEY: "quern_of-the-user" };
    expect(await elsewhere(port, ["get"], env)).toMatchObject({
      code: 1,
      err: expect.stringContaining("redirects are not followed"),
    });
    const liar = await listening(other(200, JSON.stringify({ path: `@127.0.0.1:${away}/x`, name: "echo" })));
    const liarEnv = { QUERN_HOST: `http://127.0.0.1:${liar}`, QUERN_API_KEY: "quern_of-the-user" };
    expect(await elsewhere(liar, ["job", "get", "echo", "1"], liarEnv)).toMatchObject({
      code: 1,
      err: expect.stringContaining("is not a path of"),
    });
    expect(heard).not.toContain("GET /x");
  });

  it("does not disturb the real server, which proves itself only to correct challenges", async () => {
    expect(server.cli(["get"]).code).toBe(0);
    const { port } = new URL(server.baseUrl);
    const ask = async (query: string) => {
      const response = await server.fetch(`/-/proof${query}`);
      return [response.status, (await response.json()) as { proof?: string; code?: string }] as const;
    };
    const nonce = "a1".repeat(32);
    const [status, { proof }] = await ask(`?nonce=${nonce}`);
    const { createHash } = await import("node:crypto");
    const tokenSha256 = createHash("sha256").update(token()).digest("hex");
    expect([status, proof]).toEqual([
      200,
      proofOf({ tokenSha256, nonce, host: "127.0.0.1", port: Number(port) }),
    ]);
    for (const query of ["", "?nonce=", `?nonce=${nonce}0`, `?nonce=${"A".repeat(64)}`, `?a&nonce=${nonce}`])
      expect(await ask(query)).toMatchObject([400, { code: "invalid_request" }]);
    expect((await server.fetch("/-/proof", { method: "POST" })).status).toBe(405);
  });

  it("finds no address after the server was stopped", async () => {
    const stopped = new TestServer();
    await stopped.start();
    expect(existsSync(join(stopped.dataDir, "address"))).toBe(true);
    await stopped.stopProcesses();
    expect(existsSync(join(stopped.dataDir, "address"))).toBe(false);
    await stopped.stop();
  });
});
