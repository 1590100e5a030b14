/** Somebody repairs things in the dashboard, by clicks and by keys alone. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, openTab, signedIn, signInUrl } from "../../harness/browser.ts";
import { deployDashboardProject, failingJob, repair } from "../../harness/dashboard-project.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let browser: Browser;

/** Moves the focus with the Tab key until an element with this name has it. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const matches = (text: string) => (typeof name === "string" ? text === name : name.test(text));
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press("Tab");
    const text = await page.evaluate<string>(
      'document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent.trim()',
    );
    if (matches(text)) return;
  }
  throw new Error(`80 times Tab did not reach ${name}`);
}

describe.skipIf(!hasChromium)("somebody at the dashboard", () => {
  beforeAll(async () => {
    await server.start();
    deployDashboardProject(server);
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it("finds a failed job, sees why, and runs again only what failed for one reason", async () => {
    const job = await server.submit("captions", failingJob);
    await server.ended("captions", job);
    repair(server);
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.getByRole("link", { name: `captions …${job.slice(-8)}` }).click();
    await page.getByText("8 of 40 batches failed").first().waitFor();
    await page.getByRole("link", { name: "Open the failures" }).click();
    const group = page.getByRole("listitem").filter({ hasText: "has no caption" });
    await group.getByText("4 batches").waitFor();
    await group.getByRole("heading", { name: "ValueError: item … has no caption" }).waitFor();
    await group.getByText("such as batch 7: item 7 has no caption").waitFor();
    await group.getByRole("button", { name: "Show items" }).click();
    await group.getByText("batch 37").waitFor();
    await group.getByRole("button", { name: "Run these again" }).click();
    const dialog = page.getByRole("dialog", { name: "Run these again: ValueError: item … has no caption?" });
    await dialog.getByRole("button", { name: "Run these again" }).click();
    await page.getByText("4 of 40 batches failed").first().waitFor();
    expect(await server.job("captions", job)).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 36 },
    });
    // What failed for the other reason was not run again.
    await page.getByRole("listitem").filter({ hasText: "image_url" }).getByText("4 batches").waitFor();
    await context.close();
  });

  it("stops a running job, and deletes an API, by keyboard alone", async () => {
    const job = await server.submit("captions", { ...failingJob, config: { seconds: 600 } });
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await tabTo(page, `…${job.slice(-8)}`);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await tabTo(page, "Stop");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await tabTo(page, "Stop");
    await page.keyboard.press("Enter");
    await eventually(
      "the job is stopped",
      async () => (await server.job("captions", job)).status === "status_stopped",
    );
    await tabTo(page, "APIs");
    await page.keyboard.press("Enter");
    await tabTo(page, "broken");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Delete" }).waitFor();
    await tabTo(page, "Delete");
    await page.keyboard.press("Enter");
    await page.getByLabel("Type broken to confirm").fill("broken");
    await page.keyboard.press("Enter");
    await eventually(
      "the API is gone",
      async () => (await server.fetch("/broken", { method: "POST" })).status === 404,
    );
    await context.close();
  });

  it("signs in with a code that is pasted into the address of a tab that shows the sign-in page", async () => {
    const context = await newContext(browser);
    const { page, faults } = await openTab(context, `${server.baseUrl}/-/ui/`);
    await page.getByRole("heading", { name: "Sign in to Quern" }).waitFor();
    await page.evaluate("document.body.dataset.loaded = 'once'");
    await page.goto(signInUrl(server));
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    expect(await page.evaluate("document.body.dataset.loaded")).toBe("once");
    expect(page.url()).not.toContain("code=");
    expect(faults).toEqual([]);
    await context.close();
  });

  it("rolls an API back to the version before", async () => {
    const before = await server.api("flowers");
    deployDashboardProject(server);
    const files = {
      "p.py":
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return 2\n",
    };
    server.deploy({
      "quern.yaml": JSON.stringify([{ name: "flowers", predictor: { path: "p.py" } }]),
      ...files,
    });
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers?tab=versions`);
    await page.getByText("predictor.path").first().waitFor();
    await page.getByRole("button", { name: "Roll back to this" }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back to this" }).click();
    await eventually(
      "the former version serves",
      async () => (await server.api("flowers")).api_id === before.api_id,
    );
    await context.close();
  });

  it("stops all jobs that match, after the server has counted them, and no job that came later", async () => {
    const running = { ...failingJob, config: { seconds: 600 } };
    const jobs = [await server.submit("captions", running), await server.submit("captions", running)];
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/jobs`);
    await page.getByRole("button", { name: "Stop…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: /Stop \(\d+\)/ }).waitFor();
    const later = await server.submit("captions", running);
    await dialog.getByRole("button", { name: /Stop \(\d+\)/ }).click();
    for (const job of jobs)
      await eventually(
        "it is stopped",
        async () => (await server.job("captions", job)).status === "status_stopped",
      );
    expect((await server.job("captions", later)).end_time).toBeUndefined();
    await context.close();
  });

  it("with a view key sees everything, is offered no change, and is refused each by the server", async () => {
    const { out } = server.cli(["keys", "create", "--scope", "view", "-o", "json"]);
    const { key } = JSON.parse(out) as { key: string };
    const context = await newContext(browser);
    const { page } = await openTab(context, `${server.baseUrl}/`);
    await page.getByLabel("Key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "flowers" }).first().click();
    await page.getByText("Requests per second").waitFor();
    expect(await page.getByRole("button", { name: /Delete|Refresh|Pause/ }).count()).toBe(0);
    const changes: [method: string, path: string, body?: string][] = [
      ["DELETE", "/-/apis/flowers"],
      ["POST", "/-/apis/flowers/refresh"],
      ["POST", "/-/apis/flowers/rollback"],
      ["POST", "/-/apis/captions/pause"],
      ["POST", "/-/jobs/unpause"],
      ["POST", "/-/selections", '{"jobs": {}}'],
      ["POST", "/-/keys"],
      ["DELETE", "/-/queues/captions-failed/messages"],
      ["POST", "/captions/01aaaaaaaaaaaaaaaaaaaaaaaa/redrive"],
      ["DELETE", "/captions/01aaaaaaaaaaaaaaaaaaaaaaaa"],
    ];
    const statuses = await page.evaluate(
      (asked) =>
        Promise.all(
          asked.map(async ([method, path, body]) => {
            const response = await fetch(path, { method, body, headers: { "x-quern-dashboard": "1" } });
            return `${method} ${path} ${response.status}`;
          }),
        ),
      changes,
    );
    expect(statuses).toEqual(changes.map(([method, path]) => `${method} ${path} 403`));
    await context.close();
  });
});
