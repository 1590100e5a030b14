/** What deployed code returns to a browser in which somebody is signed in to the dashboard. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, signedIn } from "../../harness/browser.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

/** Code for people that forgets to escape. */
const GREETS = `
class Response:
    def __init__(self, body): self.status_code, self.headers, self.body = 200, {"content-type": "text/html"}, body.encode()
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, query_params): return Response("<p>Hello " + query_params["name"])
`;
const MAKES_A_KEY = `<script>
  document.title = "runs as " + origin;
  fetch("/-/keys", {
    method: "POST",
    headers: { "x-quern-dashboard": "1", "content-type": "application/json" },
    body: '{"scope": "admin"}',
  }).then((made) => made.text(), String).then((text) => (document.title = "ended: " + text));
</script>`;

describe.skipIf(!hasChromium)("a page that a predictor returns", () => {
  const server = new TestServer();
  const elsewhere = createServer((_request, response) => {
    const action = `${server.baseUrl}/greets?name=${encodeURIComponent(MAKES_A_KEY)}`;
    response.setHeader("content-type", "text/html");
    response.end(`<form method="post" enctype="text/plain" action="${action.replaceAll('"', "&quot;")}">`);
  });
  let browser: Browser;
  beforeAll(async () => {
    await server.start();
    const api = { name: "greets", predictor: { path: "p.py" }, networking: { cors_origins: ["*"] } };
    server.deploy({ "quern.yaml": JSON.stringify([api]), "p.py": GREETS });
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    elsewhere.closeAllConnections();
    elsewhere.close();
    await server.stop();
  });

  it("cannot act for whoever is signed in", async () => {
    const context = await newContext(browser);
    await signedIn(context, server);
    const page = await context.newPage();
    await page.goto(`http://localhost:${(elsewhere.address() as AddressInfo).port}/`);
    await page.evaluate("document.forms[0].submit()");
    await page.getByText("Hello").waitFor();
    await eventually("its script has run", async () => (await page.title()).startsWith("ended"));
    expect(await page.title()).toContain("TypeError: Failed to fetch");
    expect(server.cli(["keys", "list", "-o", "json"]).out).not.toContain('"admin"');
    await context.close();
  });
});
