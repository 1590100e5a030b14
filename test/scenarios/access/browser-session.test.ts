/** A session in a real browser: the cookie, the policy of the pages, and pages at another port of the same host. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { freePort } from "../../harness/faulty-proxy.ts";
import { root, TestServer } from "../../harness/server.ts";

const hasChromium = spawnSync("which", ["chromium"]).status === 0;
const server = new TestServer();
afterAll(() => server.stop());

/** Signs in with the code in its address, and says what it may do. */
const SCRIPT = `
const control = new URL("../", import.meta.url);
const ask = async (path, init) => (await fetch(new URL(path, control), init)).status;
const headers = { "x-quern-dashboard": "1" };
const code = location.hash.slice("#code=".length);
const said = [
  await ask("session", { method: "POST", body: JSON.stringify({ code }) }),
  await ask("version", { headers }),
  await ask("keys", { method: "POST", headers, body: JSON.stringify({ scope: "predict" }) }),
  await ask("version"),
  document.cookie,
  await fetch("http://127.0.0.1:1/").catch(() => "blocked"),
  window.inline ?? "no inline script",
];
document.body.textContent = JSON.stringify(said);
`;
const INDEX = `<!doctype html><title>Quern</title><script>window.inline = "ran"</script>
<script type="module" src="./app.js"></script><body></body>`;

/** This installation with another dashboard. */
function installation(): string {
  const directory = join(server.dir, "installation");
  mkdirSync(join(directory, "dist", "dashboard"), { recursive: true });
  for (const name of ["bin", "package.json", "dist/bundle", "dist/json-lines.wasm"])
    cpSync(join(root, name), join(directory, name), { recursive: true });
  for (const name of ["node_modules", "python", "protocol"])
    symlinkSync(join(root, name), join(directory, name));
  writeFileSync(join(directory, "dist", "dashboard", "index.html"), INDEX);
  writeFileSync(join(directory, "dist", "dashboard", "app.js"), SCRIPT);
  return join(directory, "bin", "quern");
}

/** The final text of a page. */
const domOf = (url: string) =>
  new Promise<string>((resolve) => {
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"];
    const profile = `--user-data-dir=${join(server.dir, "browser")}`;
    const browser = spawn("chromium", [...options, "--dump-dom", profile, url], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let out = "";
    browser.stdout.on("data", (text) => (out += String(text)));
    browser.on("exit", () => resolve(out));
  });
const address = () => server.cli(["ui", "--print"]).out.trim();

it.runIf(hasChromium)(
  "a page of the dashboard signs in by its code and acts, and scripts do not see the cookie",
  async () => {
    server.program = installation();
    await server.start();
    const dom = await domOf(address().replace("/-/ui/", "/-/ui/apis/echo"));
    expect(dom).toContain('[201,200,200,401,"","blocked","no inline script"]');
  },
  60_000,
);

it.runIf(hasChromium)(
  "a page at another port of the host cannot use the session of the browser",
  async () => {
    const port = await freePort();
    const foreign = createServer((request, response) => {
      response.setHeader("content-type", "text/html");
      const seen = /quern_session=/.test(request.headers.cookie ?? "");
      response.end(`<body><script type="module">
      const headers = {"x-quern-dashboard": "1"};
      const ask = (path, init) => fetch("${server.baseUrl}" + path, {credentials: "include", ...init})
        .then((r) => r.status, () => "blocked");
      document.body.textContent = JSON.stringify(["signed in: ${seen}", await ask("/-/version", {headers}),
        await ask("/-/jobs/unpause", {method: "POST", headers}), await ask("/-/jobs/unpause", {method: "POST", mode: "no-cors"})]);
    </script></body>`);
    });
    await new Promise<void>((resolve) => foreign.listen(port, "127.0.0.1", resolve));
    // The browser keeps its cookies when it ends.
    expect(await domOf(address())).toContain("[201,200,");
    const dom = await domOf(`http://127.0.0.1:${port}/`);
    foreign.close();
    // The browser sends the cookie there, too: it does not distinguish ports (SECURITY.md#sessions-of-browsers).
    expect(dom).toContain('["signed in: true","blocked","blocked","blocked"]');
    expect(server.cli(["audit"]).out).not.toContain("unpause");
  },
  60_000,
);
