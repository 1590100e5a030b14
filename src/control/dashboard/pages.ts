/**
 * `/-/ui/`: the files of the dashboard, which need no key (docs/contract/access.md#dashboard-files). They show nothing
 * without one: all data comes by the operations.
 */
import { type Context, Hono } from "hono";
import { ServiceError } from "../../contracts/errors.ts";
import { bodyOf, chosenForm, type PageFile, readPageFiles } from "./page-files.ts";

const ROOT = "/-/ui/";
const INDEX = "index.html";
/** Paths have parts such as names of APIs and ids of jobs. Each depth has an index of its own. */
const DEPTH_MAX = 8;

/** Nothing comes from another origin, nothing is inline, and no other page frames these. */
const HEADERS = {
  "content-security-policy":
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

export function pageRoutes(directory: string): Hono {
  const files = readPageFiles(directory);
  const indexes = indexesOf(files.get(INDEX));
  const app = new Hono();
  // The relative address also works below a prefix that only the proxy knows.
  app.all("/-/ui", (c) => c.body(null, 302, { ...HEADERS, location: "ui/" }));
  app.all(`${ROOT}*`, (c) => {
    const { method } = c.req;
    if (method !== "GET" && method !== "HEAD") {
      const message = `${method} is not allowed here; allowed: GET, HEAD`;
      throw new ServiceError("method_not_allowed", message, { allow: "GET, HEAD" });
    }
    if (indexes.length === 0) throw missing();
    const path = c.req.path.slice(ROOT.length);
    const file = path === INDEX ? undefined : files.get(path);
    const found = file ?? indexes[depthOf(path)];
    if (found === undefined)
      throw new ServiceError("route_not_found", `${c.req.path} is not an address of the dashboard`);
    return answer(c, found);
  });
  return app;
}

/**
 * The pages use the address for their state, so a path that is no file is the index. NaN for a file that is missing:
 * all files lie at the top, and deeper paths may end in names with dots, such as that of a queue.
 */
function depthOf(path: string): number {
  const parts = path.split("/");
  const isFileName = parts.length === 1 && path !== INDEX && path.includes(".");
  return isFileName ? Number.NaN : parts.length - 1;
}

/** The index for each depth of a path: `./app.js` is `../app.js` one level deeper. No prefix needs to be known. */
function indexesOf(index: PageFile | undefined): PageFile[] {
  if (index === undefined) return [];
  const text = index.plain.bytes.toString("utf8");
  const deeper = Array.from({ length: DEPTH_MAX }, (_, at) => {
    const shifted = text.replace(/(\s(?:src|href)=")\.\//g, `$1${"../".repeat(at + 1)}`);
    return { ...index, plain: bodyOf(Buffer.from(shifted)), compressed: new Map() };
  });
  return [index, ...deeper];
}

function answer(c: Context, file: PageFile): Response {
  const { encoding, body } = chosenForm(file, c.req.header("accept-encoding"));
  const headers: Record<string, string> = {
    ...HEADERS,
    etag: body.etag,
    "cache-control": file.isHashed ? "public, max-age=31536000, immutable" : "no-cache",
  };
  if (file.compressed.size > 0) headers.vary = "Accept-Encoding";
  const known = c.req
    .header("if-none-match")
    ?.split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""));
  if (known?.some((tag) => tag === body.etag || tag === "*") === true) return c.body(null, 304, headers);
  headers["content-type"] = file.type;
  headers["content-length"] = String(body.bytes.length);
  if (encoding !== undefined) headers["content-encoding"] = encoding;
  return c.req.method === "HEAD" ? c.body(null, 200, headers) : c.body(body.bytes, 200, headers);
}

function missing(): ServiceError {
  const cure =
    "install the package from npm, or in a checkout run `npm run build`; everything it shows is also in `quern get` and the other commands";
  return new ServiceError("route_not_found", `this installation has no dashboard; ${cure}`);
}
