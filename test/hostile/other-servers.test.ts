/** The command line with a faulty server: its memory use, and the files that it writes. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { archiveOf } from "../harness/archives.ts";
import { root } from "../harness/server.ts";

const MIB = 1024 * 1024;
const CONFIG = { path: "config.yaml", body: "- {name: x, predictor: {path: p.py}}\n" };

const dir = mkdtempSync(join(tmpdir(), "quern-test-"));
let answer: (response: ServerResponse) => void = () => {};
const server = createServer((_, response) => answer(response.on("error", () => {})));
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(dir, { recursive: true });
});

const quern = (...args: string[]) =>
  new Promise<{ code: number | null; err: string }>((resolve) => {
    const host = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { ...process.env, HOME: dir, QUERN_HOST: host, QUERN_API_KEY: "key" };
    const child = spawn(process.execPath, [join(root, "bin", "quern"), ...args], { env, cwd: dir });
    let err = "";
    child.stdout.resume();
    child.stderr.on("data", (text) => (err += String(text)));
    child.on("exit", (code) => resolve({ code, err }));
  });

/** Sends until the client leaves. */
function sendForEver(response: ServerResponse, first: string): void {
  const piece = Buffer.alloc(MIB, "x");
  response.write(first);
  const more = () => {
    while (!response.destroyed) if (!response.write(piece)) return response.once("drain", more);
    return response;
  };
  more();
}

it.each([200, 500])("the command line leaves a server whose answer does not end: %s", async (status) => {
  answer = (response) =>
    sendForEver(response.writeHead(status, { "content-type": "application/json" }), '{"message":"');
  const { code, err } = await quern("keys", "list");
  expect([code, err]).toEqual([1, expect.stringMatching(status === 200 ? /more than 256 MiB/ : /too long/)]);
});

it("exported files get no special rights, and no other user can read them", async () => {
  const program = { path: "project/p.py", body: "", mode: 0o6777 };
  answer = (response) => response.end(archiveOf(CONFIG, program, { path: "project/.env", body: "A=1" }));
  expect(await quern("export", "api", "x", "exported")).toMatchObject({ code: 0 });
  expect(statSync(join(dir, "exported")).mode & 0o7777).toBe(0o700);
  expect(statSync(join(dir, "exported", "p.py")).mode & 0o7000).toBe(0);
});

it("a huge export is refused before it fills the disk, and leaves nothing", async () => {
  // The announced size counts.
  const big = { path: "project/a", body: "a", size: 513 * MIB };
  answer = (response) => response.end(archiveOf(CONFIG, big));
  const { code, err } = await quern("export", "api", "x", "filled");
  expect([code, err]).toEqual([1, expect.stringContaining("the unpacked archive has more than")]);
  expect(existsSync(join(dir, "filled")) ? readdirSync(join(dir, "filled")) : []).toEqual([]);
});

it("verify leaves a server that sends an endless line, or none of its lines", async () => {
  const foreign = /verify is not one of a Quern server of this release/;
  const endless = (response: ServerResponse) => sendForEver(response, '{"path":"');
  const lines = (text: string) => (response: ServerResponse) => void response.end(text);
  for (const send of [
    endless,
    lines("<html>\n"),
    lines("7\n"),
    lines('{"differences":{}}\n'),
    lines("\n\n"),
  ]) {
    answer = (response) => (response.req.method === "POST" ? send(response) : response.end('{"path":"/x"}'));
    const { code, err } = await quern("job", "verify", "x", "1");
    expect([code, err]).toEqual([1, expect.stringMatching(foreign)]);
    expect(err).not.toMatch(/ {4}at |Unexpected token/);
  }
});

it.each([
  [200, "null"],
  [200, "7"],
  [200, '"text"'],
  [200, "<html>"],
  [200, "{}"],
  [200, '{"keys":[7,null]}'],
  [500, "null"],
  [500, '{"errors":7}'],
])("the command line says whose answer it does not understand: %s %s", async (status, text) => {
  answer = (response) => response.writeHead(status, { "content-type": "application/json" }).end(text);
  const { code, err } = await quern("keys", "list");
  const said = status === 200 ? "to /-/keys is not one of a Quern server of this release" : text;
  expect([code, err]).toEqual([1, expect.stringContaining(said)]);
  expect(err).not.toMatch(/^error: (Cannot read|.* not iterable|.* not a function|Unexpected token)/m);
});
