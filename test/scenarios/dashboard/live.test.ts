/** The dashboard's stream: one for all tabs of a browser, which goes on after the controller was killed. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, openTab, signedIn, signInUrl } from "../../harness/browser.ts";
import { deployDashboardProject, failingJob } from "../../harness/dashboard-project.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let browser: Browser;
/** Streams of the overview that pass the proxy in front of the server now. */
let streams = 0;
const proxy = createServer((asked, answer) => {
  const { port } = new URL(server.baseUrl);
  const isStream = asked.url === "/-/overview";
  const sent = request({ port, method: asked.method, path: asked.url, headers: asked.headers }, (got) => {
    if (isStream) streams++;
    got.once("close", () => isStream && streams--);
    answer.writeHead(got.statusCode!, got.headers);
    got.pipe(answer);
  });
  sent.on("error", () => answer.destroy());
  answer.on("close", () => sent.destroy());
  asked.pipe(sent);
});

describe.skipIf(!hasChromium)("the dashboard's stream", () => {
  beforeAll(async () => {
    await server.start();
    deployDashboardProject(server);
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    proxy.closeAllConnections();
    proxy.close();
    await server.stop();
  });

  it("is one for two tabs, shows a new job in both, and ends with the last tab", async () => {
    const context = await newContext(browser);
    const front = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const first = await openTab(context, signInUrl(server).replace(server.baseUrl, front));
    await first.page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
    const second = await openTab(context, `${front}/-/ui/`);
    await second.page.getByRole("heading", { name: "APIs", exact: true }).waitFor();
    expect(streams).toBe(1);
    const job = await server.submit("captions", { ...failingJob, config: { seconds: 600 } });
    for (const { page } of [first, second])
      await page
        .getByText(`…${job.slice(-8)}`)
        .first()
        .waitFor();
    await first.page.close();
    expect(streams).toBe(1);
    await second.page.close();
    await eventually("no tab is open, so nobody follows", () => streams === 0);
    await context.close();
  });

  it("moves no row under the mouse, and says at once that requests of an API fail", async () => {
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    const table = page.getByRole("region", { name: "APIs" });
    const rows = table.locator("tbody > tr");
    const names = async () =>
      (await rows.allTextContents()).map((text) => /^(broken|captions|flowers)/.exec(text)?.[0]);
    await eventually("all are there", async () => (await names()).join() === "broken,captions,flowers");
    await rows.nth(1).hover();
    for (let at = 0; at < 10; at++) await server.post("/flowers", { fail: true });
    await rows.nth(2).getByText("failing").waitFor();
    expect(await names()).toEqual(["broken", "captions", "flowers"]);
    await page.getByRole("heading", { name: "Overview" }).hover();
    await eventually("it comes first", async () => (await names()).join() === "flowers,broken,captions");
    await page.getByRole("link", { name: "flowers" }).first().click();
    await page.locator(".status.bad", { hasText: "failing" }).first().waitFor();
    await page.getByText(/100 % of requests fail in predict\(\): ValueError: no such flower/).waitFor();
    await context.close();
  });

  it("goes on by itself after the controller was killed", async () => {
    const context = await newContext(browser);
    const { page, faults } = await signedIn(context, server);
    // The first overview comes without the stream, which begins later.
    const before = await server.submit("captions", { ...failingJob, config: { seconds: 600 } });
    await page
      .getByText(`…${before.slice(-8)}`)
      .first()
      .waitFor();
    process.kill(server.child("controller"), "SIGKILL");
    await page.getByText("connecting again").waitFor();
    await page.locator(".foot .status.good").waitFor();
    const job = await server.submit("captions", { ...failingJob, config: { seconds: 600 } });
    await page
      .getByText(`…${job.slice(-8)}`)
      .first()
      .waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });
});
