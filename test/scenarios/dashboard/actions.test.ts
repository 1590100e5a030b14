/** The other actions of the dashboard's pages, each by its button, on a real server. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, signedIn } from "../../harness/browser.ts";
import { deployDashboardProject, failingJob, repair } from "../../harness/dashboard-project.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let browser: Browser;

/** Runs with a page of the dashboard open. */
async function at(path: string, act: (page: Page) => Promise<void>): Promise<void> {
  const context = await newContext(browser);
  const { page } = await signedIn(context, server);
  await page.goto(`${server.baseUrl}/-/ui/${path}`);
  await act(page);
  await context.close();
}

/** Presses a button, and the one of the dialog that asks. */
async function press(page: Page, name: string | RegExp, confirmation: string | RegExp = name): Promise<void> {
  await page.getByRole("button", { name }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: confirmation }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

describe.skipIf(!hasChromium)("a button of the dashboard", () => {
  beforeAll(async () => {
    await server.start();
    deployDashboardProject(server);
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it("pauses a job and continues it", async () => {
    const job = await server.submit("captions", { ...failingJob, config: { seconds: 0.3 } });
    await at(`jobs/captions/${job}`, async (page) => {
      await press(page, "Pause");
      await page.getByText("paused").first().waitFor();
      expect((await server.job("captions", job)).paused_time).toBeDefined();
      await press(page, "Unpause");
      await server.ended("captions", job);
      await page.getByText("completed with failures").first().waitFor();
    });
  });

  it("resumes a job that was stopped", async () => {
    const job = await server.submit("captions", { ...failingJob, config: { seconds: 0.05 } });
    await server.fetch(`/captions/${job}`, { method: "DELETE" });
    await server.ended("captions", job);
    await at(`jobs/captions/${job}`, (page) => press(page, "Resume"));
    await eventually(
      "all batches are settled",
      async () => (await server.job("captions", job)).status === "status_completed_with_failures",
    );
  });

  it("pauses an API and continues it, and refreshes another", async () => {
    await at("apis/captions", async (page) => {
      await press(page, "Pause");
      await page.getByRole("button", { name: "Unpause", exact: true }).waitFor();
      await press(page, "Unpause");
      await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
    });
    await eventually("it serves", async () => (await server.post("/flowers", {})).ok);
    const before = (await server.api("flowers")).replicas.map(({ pid }) => pid);
    await at("apis/flowers", (page) => press(page, "Refresh"));
    await eventually("there are new replicas", async () => {
      const { replicas } = await server.api("flowers");
      return replicas.length > 0 && replicas.every(({ pid }) => !before.includes(pid));
    });
  });

  it("runs selected messages again, and removes those that match a search", async () => {
    const job = await server.submit("captions", {
      ...failingJob,
      queue_dead_letter_queue: { arn: "chosen", max_receive_count: 1 },
    });
    await server.ended("captions", job);
    repair(server);
    await at("queues/chosen", async (page) => {
      await page.getByRole("checkbox").first().check();
      await press(page, "Run again (1 selected)…", "Run again (1)");
      await eventually(
        "its batch has succeeded",
        async () => (await server.job("captions", job)).batch_metrics.succeeded === 33,
      );
      await page.getByLabel("Text in payload or error").fill("image_url");
      await page.getByRole("button", { name: "Remove (all that match)…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Remove (4)" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.getByLabel("Text in payload or error").fill("");
      await eventually("three are left", async () => (await page.getByRole("checkbox").count()) === 3);
    });
  });

  it("purges a queue, after it has said how many messages are in it", async () => {
    const job = await server.submit("captions", {
      ...failingJob,
      queue_dead_letter_queue: { arn: "purged", max_receive_count: 1 },
    });
    await server.ended("captions", job);
    const { failed } = (await server.job("captions", job)).batch_metrics;
    await at("queues/purged", async (page) => {
      await press(page, "Remove (all)…", `Remove (${failed})`);
      await page.getByText("The queue is empty").waitFor();
      expect(await page.getByRole("checkbox").count()).toBe(0);
    });
    await at("queues", async (page) => {
      await page.getByRole("row", { name: /^purged 0/ }).waitFor();
    });
    await at("audit", (page) => page.getByText("POST /-/selections").first().waitFor());
  });

  it("goes to an API by the first letters of its name", async () => {
    await at("", async (page) => {
      await page.getByRole("button", { name: "Go to…" }).waitFor();
      await page.keyboard.press("/");
      await page.getByRole("dialog").getByRole("searchbox").fill("flow");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "flowers", exact: true }).waitFor();
    });
  });

  // Last: from the first key on, every request needs one.
  it("creates a key, shows it once, and revokes it", async () => {
    await at("keys", async (page) => {
      await page.getByRole("button", { name: "New key…" }).click();
      await page.getByLabel("Name").fill("the robot");
      await page.getByRole("button", { name: "Create" }).click();
      const key = await page.getByRole("dialog").locator("code").textContent();
      const status = async () =>
        (await server.post("/flowers", {}, { authorization: `Bearer ${key}` })).status;
      expect(await status()).toBe(200);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByText("the robot").waitFor();
      await press(page, "Revoke");
      expect(await status()).toBe(401);
    });
  });
});
