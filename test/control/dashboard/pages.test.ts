/** The files of the dashboard: which paths lead to which, in which form, and with which headers. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import { afterAll, expect, it } from "vitest";
import { asServiceError } from "../../../src/contracts/errors.ts";
import { pageRoutes } from "../../../src/control/dashboard/pages.ts";

const INDEX =
  '<!doctype html><link rel="stylesheet" href="./app-AAAAAAAA.css"><script src="./app-5PJXEHFW.js"></script>';
const SCRIPT = "console.log('dashboard');\n".repeat(50);
const directory = mkdtempSync(join(tmpdir(), "quern-pages-"));
const pages = join(directory, "pages");
mkdirSync(join(pages, "fonts"), { recursive: true });
writeFileSync(join(directory, "secret.txt"), "not for browsers");
writeFileSync(join(pages, "index.html"), INDEX);
writeFileSync(join(pages, "index.html.gz"), gzipSync(INDEX));
writeFileSync(join(pages, "app-5PJXEHFW.js"), SCRIPT);
writeFileSync(join(pages, "app-5PJXEHFW.js.gz"), gzipSync(SCRIPT));
writeFileSync(join(pages, "app-5PJXEHFW.js.br"), brotliCompressSync(SCRIPT));
writeFileSync(join(pages, "icon.svg"), "<svg/>");
writeFileSync(join(pages, "fonts", "a.woff2"), "font");
afterAll(() => rmSync(directory, { recursive: true }));

const app = pageRoutes(pages);
app.onError((error) => {
  const { status, message } = asServiceError(error);
  return new Response(message, { status });
});
const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  app.request(path, { headers, method });

it("the index is asked for each time, and a file with a hash in its name is kept for ever", async () => {
  const index = await get("/-/ui/");
  expect([index.status, await index.text()]).toEqual([200, INDEX]);
  expect(Object.fromEntries(index.headers)).toMatchObject({
    "cache-control": "no-cache",
    "content-type": "text/html; charset=utf-8",
    "content-security-policy":
      "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
  });
  const script = await get("/-/ui/app-5PJXEHFW.js");
  expect(await script.text()).toBe(SCRIPT);
  expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect((await get("/-/ui/icon.svg")).headers.get("cache-control")).toBe("no-cache");
  expect((await get("/-/ui/fonts/a.woff2")).headers.get("content-type")).toBe("font/woff2");
});

it.each([
  ["", null, undefined],
  ["gzip", "gzip", gunzipSync],
  ["gzip, deflate, br, zstd", "br", undefined],
  ["br;q=0, gzip;q=0.5", "gzip", gunzipSync],
  ["*", "br", undefined],
  ["*, br;q=0", "gzip", gunzipSync],
  ["identity", null, undefined],
])("a client that accepts %j gets %s", async (accepted, encoding, unpack) => {
  const response = await get("/-/ui/app-5PJXEHFW.js", { "accept-encoding": accepted });
  const { headers } = response;
  expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([encoding, "Accept-Encoding"]);
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(headers.get("content-length")).toBe(String(bytes.length));
  if (unpack !== undefined) expect(unpack(bytes).toString()).toBe(SCRIPT);
  if (encoding === null) expect(bytes.toString()).toBe(SCRIPT);
});

it("a form that the client has is not sent again, and no other form counts as it", async () => {
  const plain = (await get("/-/ui/app-5PJXEHFW.js")).headers.get("etag")!;
  const packed = (await get("/-/ui/app-5PJXEHFW.js", { "accept-encoding": "br" })).headers.get("etag")!;
  expect(plain).not.toBe(packed);
  for (const known of [plain, `"x", W/${plain}`, "*"]) {
    const response = await get("/-/ui/app-5PJXEHFW.js", { "if-none-match": known });
    expect([response.status, await response.text()]).toEqual([304, ""]);
  }
  expect((await get("/-/ui/app-5PJXEHFW.js", { "if-none-match": packed })).status).toBe(200);
});

it("HEAD has the headers of GET and no body", async () => {
  const response = await get("/-/ui/app-5PJXEHFW.js", {}, "HEAD");
  expect([response.status, await response.text()]).toEqual([200, ""]);
  expect(response.headers.get("content-length")).toBe(String(SCRIPT.length));
});

it("every path without a file extension is the index, which finds its files from there", async () => {
  for (const [path, up] of [
    ["/-/ui/jobs", "./"],
    ["/-/ui/apis/iris", "../"],
    ["/-/ui/jobs/count/01abc?tab=failures", "../../"],
  ] as const) {
    const response = await get(path, { "accept-encoding": "gzip" });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = response.headers.has("content-encoding") ? gunzipSync(bytes).toString() : bytes.toString();
    expect(text).toBe(INDEX.replaceAll('"./', `"${up}`));
  }
});

it.each([
  "app-00000000.js",
  "app-5PJXEHFW.js.br",
  "..%2fsecret.txt",
  "%2e%2e/secret.txt",
  "../secret.txt",
  "a/b/c/d/e/f/g/h/i/j",
])("%s is no file of the dashboard", async (path) => {
  const response = await app.request(new Request(`http://x/-/ui/${path}`));
  expect([response.status, await response.text()]).toEqual([
    404,
    expect.not.stringContaining("not for browsers"),
  ]);
});

it("nothing else than reading is allowed", async () => {
  expect((await get("/-/ui/", {}, "POST")).status).toBe(405);
  const short = await get("/-/ui");
  expect([short.status, short.headers.get("location")]).toEqual([302, "ui/"]);
});

it("an installation without a dashboard says what to do", async () => {
  const none = pageRoutes(join(directory, "absent"));
  none.onError(
    (error) => new Response(asServiceError(error).message, { status: asServiceError(error).status }),
  );
  const response = await none.request("/-/ui/");
  expect([response.status, await response.text()]).toEqual([
    404,
    expect.stringContaining("this installation has no dashboard; install the package from npm"),
  ]);
});
