/** The dashboard's files and addresses, `quern ui`, and the versions of an API (docs/guides/dashboard.md). */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { hasNginx, Nginx } from "../../harness/nginx.ts";
import { ECHO } from "../../harness/projects.ts";
import { root, TestServer } from "../../harness/server.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const PAGE = { "x-quern-dashboard": "1" };
const SECRET = "hunter2hunter2";

const server = new TestServer();
const adminToken = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const keyOf = async (scope: string) => {
  const response = await server.post("/-/keys", { scope }, bearer(adminToken()));
  return ((await response.json()) as { key: string }).key;
};
const codeOf = (address: string) => /#code=([\w-]{43})\n?$/.exec(address)?.[1];
const redeem = (baseUrl: string, code: string | undefined) =>
  fetch(`${baseUrl}/-/session`, { method: "POST", body: JSON.stringify({ code }) });
/** fetch() would resolve dots in a path. */
const rawStatus = (path: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { port } = new URL(server.baseUrl);
    const sent = httpRequest({ port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once("error", reject).end();
  });
const deployed = (config: object, more: Record<string, string> = {}) => ({
  "quern.yaml": JSON.stringify([{ name: "echo", predictor: { path: "p.py", config } }]),
  "p.py": ECHO,
  ...more,
});

beforeAll(async () => {
  await server.start();
});
afterAll(() => server.stop());

describe("the pages", () => {
  it("need no key, and may load nothing from elsewhere", async () => {
    const response = await server.fetch("/-/ui/");
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/html; charset=utf-8",
    ]);
    expect(response.headers.get("content-security-policy")).toContain("default-src 'self';");
    expect(await response.text()).toContain("<title>Quern");
    const again = await server.fetch("/-/ui/", {
      headers: { "if-none-match": response.headers.get("etag")! },
    });
    expect(again.status).toBe(304);
    expect((await server.fetch("/-/ui/", { method: "HEAD" })).status).toBe(200);
    expect((await server.fetch("/-/ui/jobs/count?status=failed")).status).toBe(200);
    expect((await server.post("/-/ui/", {})).status).toBe(405);
  });

  it.each([
    "/-/ui/absent.js",
    "/-/ui/..%2f..%2fpackage.json",
    "/-/ui/%2e%2e/bundle/bin.js",
    "/-/ui/../bundle/bin.js",
    "/-/ui//etc/passwd.txt",
  ])("are no way to %s", async (path) => {
    expect([400, 404]).toContain(await rawStatus(path));
  });

  it("are where a browser goes that opens the server's address; others get an error as before", async () => {
    const seen = await server.fetch("/", { headers: BROWSER, redirect: "manual" });
    expect([seen.status, seen.headers.get("location")]).toEqual([302, "-/ui/"]);
    const shown = await server.fetch("/", { headers: BROWSER });
    expect([shown.status, new URL(shown.url).pathname]).toEqual([200, "/-/ui/"]);
    expect((await server.fetch("/")).status).toBe(404);
    expect((await server.post("/", {}, BROWSER)).status).toBe(404);
  });
});

describe("quern ui", () => {
  it("prints an address that signs a browser in once", async () => {
    const { code, out, err } = server.cli(["ui", "--print"]);
    expect([code, err, out]).toEqual([
      0,
      "",
      expect.stringMatching(`^${server.baseUrl}/-/ui/#code=[\\w-]{43}\n$`),
    ]);
    const signedIn = await redeem(server.baseUrl, codeOf(out));
    expect([signedIn.status, await signedIn.json()]).toMatchObject([201, { scope: "admin", name: null }]);
    const { url } = JSON.parse(server.cli(["ui", "-o", "json", "--print"]).out) as { url: string };
    expect(codeOf(url)).toBeDefined();
  });

  it("signs in with the key of the environment, and says if its scope is not sufficient", async () => {
    const add = (name: string, key: string) =>
      server.cli(["env", "add", name, "--host", server.baseUrl, "--key", key]);
    add("viewer", await keyOf("view"));
    add("caller", await keyOf("predict"));
    const { out } = server.cli(["ui", "--print", "-e", "viewer"]);
    expect(await (await redeem(server.baseUrl, codeOf(out))).json()).toMatchObject({ scope: "view" });
    const refused = server.cli(["ui", "--print", "-e", "caller"]);
    expect([refused.code, refused.out]).toEqual([3, ""]);
    expect(refused.err).toContain("the key's scope is predict; the control plane needs view");
  });

  it("opens the browser of a desktop, and is no failure without one that opens", async () => {
    const bin = join(server.dir, "opener");
    const opened = join(server.dir, "opened");
    mkdirSync(bin);
    const desktop = { PATH: `${bin}:${process.env.PATH}`, DISPLAY: ":77", SSH_CONNECTION: "" };
    const without = await server.cliBeside(["ui"], { ...desktop, PATH: "/nonexistent" });
    expect([without.code, codeOf(without.out)]).toEqual([0, expect.any(String)]);
    for (const name of ["xdg-open", "open"]) {
      writeFileSync(join(bin, name), `#!/bin/sh\necho "$1" > ${opened}.new\nmv ${opened}.new ${opened}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    const { code, out } = await server.cliBeside(["ui"], desktop);
    expect(code).toBe(0);
    await eventually("it is opened", () => existsSync(opened));
    expect(readFileSync(opened, "utf8")).toBe(out);
  });
});

describe("the versions of an API", () => {
  interface Version {
    api_id: string;
    is_current: boolean;
    deployed_time: string;
    spec: { predictor: { config: object } };
    files: { path: string; size: number; sha256: string }[] | null;
  }
  const versionsFor = async (key: string) => {
    const response = await server.fetch("/-/apis/echo/versions", { headers: bearer(key) });
    return ((await response.json()) as { versions: Version[] }).versions;
  };

  it("have their configurations and the hashes of their files, newest first", async () => {
    server.deploy(deployed({ size: "12345678901234567890" }, { "data/words.txt": "one" }));
    server.deploy(deployed({ password: SECRET }, { "data/words.txt": "three" }));
    const versions = await versionsFor(adminToken());
    expect(versions.map(({ is_current }) => is_current)).toEqual([true, false]);
    expect(versions[0]!.deployed_time > versions[1]!.deployed_time).toBe(true);
    expect(versions.map(({ spec }) => spec.predictor.config)).toEqual([
      { password: SECRET },
      { size: "12345678901234567890" },
    ]);
    const file = (path: string, text: string) => ({
      ...{ path, size: text.length, sha256: createHash("sha256").update(text).digest("hex") },
    });
    expect(versions[0]!.files).toContainEqual(file("data/words.txt", "three"));
    expect(versions[1]!.files).toContainEqual(file("data/words.txt", "one"));
    expect(versions.map(({ files }) => files!.filter(({ path }) => path === "p.py"))).toEqual([
      [file("p.py", ECHO)],
      [file("p.py", ECHO)],
    ]);
  });

  it("show a view key no secret, and which files changed without their hashes", async () => {
    const key = await keyOf("view");
    const response = await server.fetch("/-/apis/echo/versions", { headers: bearer(key) });
    expect(await response.text()).not.toContain(SECRET);
    const [now, before] = await versionsFor(key);
    const hashOf = ({ files }: Version, path: string) => files!.find((file) => file.path === path)!.sha256;
    expect(hashOf(now!, "p.py")).toBe(hashOf(before!, "p.py"));
    expect(hashOf(now!, "data/words.txt")).not.toBe(hashOf(before!, "data/words.txt"));
    const real = await versionsFor(adminToken());
    expect(hashOf(now!, "p.py")).not.toBe(hashOf(real[0]!, "p.py"));
  });

  it("of an unknown API are a 404, and need a key", async () => {
    expect((await server.fetch("/-/apis/absent/versions", { headers: bearer(adminToken()) })).status).toBe(
      404,
    );
    expect((await server.fetch("/-/apis/echo/versions")).status).toBe(401);
  });

  it("say so if their files were changed on the server", async () => {
    server.deploy(deployed({}, { "data/words.txt": "five" }));
    expect((await versionsFor(adminToken()))[0]!.files).not.toBe(null);
    server.deploy(deployed({}, { "data/words.txt": "six six" }));
    const projects = join(server.dataDir, "projects");
    const files = readdirSync(projects).map((id) => join(projects, id, "data/words.txt"));
    const file = files.find((path) => existsSync(path) && readFileSync(path, "utf8") === "six six")!;
    writeFileSync(file, "tampered");
    expect((await versionsFor(adminToken()))[0]!.files).toBe(null);
  });
});

describe("a server with a control listener", () => {
  const apart = new TestServer();
  const publicUrl = "https://models.example.com/quern";
  let [main, control] = ["", ""];
  beforeAll(async () => {
    [main, control] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    await apart.start({}, ["--listen", main, "--control-listen", control, "--public-url", publicUrl]);
  });
  afterAll(() => apart.stop());

  it("has the dashboard there only", async () => {
    expect((await fetch(`http://${main}/-/ui/`)).status).toBe(404);
    const asBrowser = { headers: BROWSER, redirect: "manual" } as const;
    expect((await fetch(`http://${main}/`, asBrowser)).status).toBe(404);
    const there = await fetch(`http://${control}/`, asBrowser);
    expect([there.status, there.headers.get("location")]).toEqual([302, "-/ui/"]);
    expect((await fetch(`http://${control}/-/ui/`)).status).toBe(200);
  });

  it("signs in there, by the address that the command used, with a cookie for it", async () => {
    const { out, err } = await apart.cliBeside(["ui", "--print"]);
    expect([err, out]).toEqual(["", expect.stringMatching(`^http://${control}/-/ui/#code=`)]);
    const signedIn = await redeem(`http://${control}`, codeOf(out));
    expect(signedIn.headers.get("set-cookie")).toMatch(/; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
  });
});

describe("a server with TLS", () => {
  const secure = new TestServer();
  afterAll(() => secure.stop());

  it("signs in with a cookie that browsers send over TLS only", async () => {
    const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(secure.dir, name)) as [string, string];
    makeCertificate(secure.dir, "first");
    await secure.start({}, ["--tls-cert", cert, "--tls-key", key]);
    const { out } = await secure.cliBeside(["ui", "--print"], { NODE_EXTRA_CA_CERTS: cert });
    expect(out).toMatch(/^https:.*\/-\/ui\/#code=/);
    const script = `const r = await fetch(process.argv[1], {method: "POST", body: process.argv[2]});
      console.log(r.status, r.headers.get("set-cookie"))`;
    const args = ["--input-type=module", "-e", script, `${secure.baseUrl}/-/session`];
    const said = execFileSync(process.execPath, [...args, JSON.stringify({ code: codeOf(out) })], {
      encoding: "utf8",
      env: { ...process.env, NODE_EXTRA_CA_CERTS: cert },
    });
    expect(said).toMatch(/^201 quern_session=.*; HttpOnly; SameSite=Strict; Secure\n$/);
  });
});

describe.skipIf(!hasNginx)("a server behind the nginx of the guide, with a prefix", () => {
  const behind = new TestServer();
  const nginx = new Nginx(join(behind.dir, "nginx"));
  let front = "";
  beforeAll(async () => {
    const port = await freePort();
    front = `http://127.0.0.1:${port}/quern`;
    await behind.start({}, ["--public-url", front]);
    behind.deploy(deployed({}));
    const guide = readFileSync(join(root, "docs", "guides", "dashboard.md"), "utf8");
    const conf = /```nginx dashboard\.conf\n([^`]*)```/.exec(guide)![1]!;
    const here = conf
      .replace("listen 80;", `listen 127.0.0.1:${port};`)
      .replace("models.example.com", "127.0.0.1");
    await nginx.start(here.replace("127.0.0.1:8420", new URL(behind.baseUrl).host), `${front}/-/livez`);
  });
  afterAll(async () => {
    await nginx.stop();
    await behind.stop();
  });

  it("sends browsers to the dashboard below the prefix, which finds its files on every page", async () => {
    const seen = await fetch(`${front}/`, { headers: BROWSER, redirect: "manual" });
    expect([seen.status, seen.headers.get("location")]).toEqual([302, "/quern/-/ui/"]);
    for (const path of ["", "jobs", "jobs/count/01abc"]) {
      const page = await fetch(`${front}/-/ui/${path}`);
      const [, script] = /src="([^"]*)"/.exec(await page.text())!;
      expect(new URL(script!, page.url).pathname).toMatch(/^\/quern\/-\/ui\/[^/]+\.js$/);
    }
    const short = await fetch(`${front}/-/ui`, { redirect: "manual" });
    expect(new URL(short.headers.get("location")!, `${front}/-/ui`).href).toBe(`${front}/-/ui/`);
  });

  it("signs in for the prefix only, and acts from its own pages", async () => {
    const { out } = await behind.cliBeside(["ui", "--print"]);
    expect(out).toMatch(`${front}/-/ui/#code=`);
    const origin = new URL(front).origin;
    const signedIn = await fetch(`${front}/-/session`, {
      method: "POST",
      body: JSON.stringify({ code: codeOf(out) }),
      headers: { origin },
    });
    const set = signedIn.headers.get("set-cookie")!;
    expect([signedIn.status, set]).toEqual([201, expect.stringMatching(/; Path=\/quern; Max-Age=/)]);
    const headers = { ...PAGE, cookie: set.split(";")[0]!, origin, "content-type": "application/json" };
    const refreshed = await fetch(`${front}/-/apis/echo/refresh`, { method: "POST", headers });
    expect(refreshed.status).toBe(200);
    const foreign = { ...headers, origin: "http://127.0.0.1:1" };
    expect((await fetch(`${front}/-/apis/echo/refresh`, { method: "POST", headers: foreign })).status).toBe(
      403,
    );
  });

  it("also signs in a browser on this machine that comes without nginx", async () => {
    const { out } = await behind.cliBeside(["ui", "--print"]);
    const signedIn = await redeem(behind.baseUrl, codeOf(out));
    expect(signedIn.headers.get("set-cookie")).toMatch(/; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
    const seen = await behind.fetch("/", { headers: BROWSER, redirect: "manual" });
    expect(seen.headers.get("location")).toBe("-/ui/");
  });
});

describe("a server that is public by https", () => {
  const here = new TestServer();
  afterAll(() => here.stop());

  it("signs in with a cookie for its prefix, over TLS only", async () => {
    await here.start({}, ["--public-url", "https://models.example.com/quern"]);
    const { out } = await here.cliBeside(["ui", "--print"]);
    expect(out).toMatch(/^https:\/\/models\.example\.com\/quern\/-\/ui\/#code=/);
    const signedIn = await here.post("/-/session", { code: codeOf(out) }, { "x-forwarded-for": "192.0.2.1" });
    expect(signedIn.headers.get("set-cookie")).toMatch(
      /; Path=\/quern; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
  });
});
