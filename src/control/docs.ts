/**
 * `/-/openapi.json`, and `/-/docs`: the same for people, as one page without scripts. Both need no key
 * (docs/contract/addresses.md#description-addresses).
 */
import { Hono } from "hono";
import { ERRORS } from "../contracts/errors.ts";
import { openApiDocument } from "../contracts/http/openapi.ts";
import { type Operation, scopesOf } from "../contracts/http/operation.ts";
import { OPERATIONS } from "../contracts/http/operations.ts";
import { baseUrl } from "./requests/forwarded.ts";

/** The page may load nothing. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** Stands for the server's address in what is made once. */
const BASE = "http://base.invalid";

export function docsRoutes(version: string): Hono {
  const app = new Hono();
  const description = JSON.stringify(openApiDocument(version, BASE));
  const docs = page(version, BASE);
  app.get("/-/openapi.json", (c) => {
    const text = description.replaceAll(BASE, inJson(baseUrl(c)));
    return c.body(text, 200, { "content-type": "application/json" });
  });
  app.get("/-/docs", (c) => {
    const text = docs.replaceAll(BASE, () => escaped(baseUrl(c)));
    return c.html(text, 200, { "content-security-policy": POLICY });
  });
  return app;
}

/** As between the quotes of a JSON string. */
function inJson(text: string): () => string {
  return () => JSON.stringify(text).slice(1, -1);
}

function page(version: string, base: string): string {
  const jobs = OPERATIONS.filter(({ path }) => !path.startsWith("/-/"));
  const control = OPERATIONS.filter(({ path }) => path.startsWith("/-/"));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Quern ${escaped(version)}: HTTP</title><style>${STYLE}</style></head><body>
<h1>Quern <small>${escaped(version)}</small></h1>
<p>The HTTP surface of <code>${escaped(base)}</code>, also as <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).
A prediction is <code>POST ${escaped(base)}/&lt;api_name&gt;</code> with <code>Content-Type: application/json</code>; the response is what <code>predict()</code> returns.</p>
<p>Keys go in <code>Authorization: Bearer KEY</code> or <code>X-API-Key: KEY</code>. Errors are <code>application/problem+json</code>.</p>
<h2>Jobs of batch APIs</h2>
${jobs.map(section).join("\n")}
<h2>Control</h2>
${control.map(section).join("\n")}
<h2>Errors</h2>
<table><tr><th>status</th><th>code</th><th>meaning</th></tr>
${Object.entries(ERRORS)
  .map(
    ([code, [status, title]]) =>
      `<tr><td>${status}</td><td><code>${code}</code></td><td>${escaped(title)}</td></tr>`,
  )
  .join("\n")}
</table></body></html>
`;
}

function section(operation: Operation): string {
  const { id, method, path, about, parameters, body, answers, errors } = operation;
  const opening = scopesOf(operation);
  const rows = [
    ...parameters.map(({ name, in: place, about: meaning }) => [
      `${place} <code>${name}</code>`,
      escaped(meaning),
    ]),
    ...(body === undefined ? [] : [["body", `<code>${body.type}</code>`]]),
    [
      "answer",
      Object.keys(answers)
        .map((type) => `<code>${type}</code>`)
        .join(" or "),
    ],
    ...(errors.length === 0 ? [] : [["errors", errors.map((code) => `<code>${code}</code>`).join(" ")]]),
    ["key", opening.map((one) => `<code>${one}</code>`).join(" or ") || "none"],
  ];
  return `<section id="${id}"><h3><b class="${method}">${method.toUpperCase()}</b> <code>${escaped(path)}</code></h3><p>${escaped(about)}</p>
<table>${rows.map(([head, text]) => `<tr><th>${head}</th><td>${text}</td></tr>`).join("")}</table></section>`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem; }
h1 small { font-weight: normal; opacity: .6; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 1.75rem 0 0; font-size: 1.05rem; } section > p { margin: .25rem 0 .5rem; }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: .25em; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-top: 1px solid var(--line); }
th { font-weight: normal; white-space: nowrap; opacity: .8; width: 11rem; }
b { display: inline-block; min-width: 4rem; } .get { color: #2a7ab8; } .post { color: #2d8a45; } .delete { color: #c0392b; }
`;
