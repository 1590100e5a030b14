/** Every page of the dashboard, in a real browser on a real server. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, SCREENS, signedIn } from "../../harness/browser.ts";
import { deployDashboardProject, failingJob } from "../../harness/dashboard-project.ts";
import { eventually } from "../../harness/eventually.ts";
import { problemsOf } from "../../harness/page-problems.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let browser: Browser;
let job = "";

/** Each page: its address below `/-/ui/`, and a text that shows that its content has come. */
const PAGES: [name: string, path: () => string, content: string][] = [
  ["overview", () => "", "Needs attention"],
  ["apis", () => "apis", "3 of 3"],
  ["api", () => "apis/flowers", "Requests per second"],
  ["api-versions", () => "apis/flowers?tab=versions", "deployed"],
  ["api-configuration", () => "apis/flowers?tab=configuration", "flowers.py"],
  ["api-logs", () => "apis/flowers?tab=logs", "loaded the model"],
  ["api-try", () => "apis/flowers?tab=try", "Request body"],
  ["api-in-error", () => "apis/broken", "wrong checksum"],
  ["batch-api", () => "apis/captions", "Batches per second"],
  ["jobs", () => "jobs", "8 of 40 batches failed"],
  ["job", () => `jobs/captions/${job}`, "Failed attempts"],
  ["job-failures", () => `jobs/captions/${job}?tab=failures`, "has no caption"],
  ["job-logs", () => `jobs/captions/${job}?tab=logs`, "lines"],
  ["job-output", () => `jobs/captions/${job}?tab=output`, "Rows"],
  ["job-submission", () => `jobs/captions/${job}?tab=submission`, "captions-failed"],
  ["queues", () => "queues", "captions-failed"],
  ["queue", () => "queues/captions-failed", "has no caption"],
  ["applications", () => "applications", "No declarative application"],
  ["keys", () => "keys", "There is no key"],
  ["audit", () => "audit", "POST /captions"],
  ["missing", () => "nowhere", "There is no such page"],
];

describe.skipIf(!hasChromium)("the dashboard", () => {
  beforeAll(async () => {
    await server.start();
    deployDashboardProject(server);
    job = await server.submit("captions", failingJob);
    await server.ended("captions", job);
    await eventually(
      "the broken API is in error",
      async () => (await server.api("broken")).status === "error",
    );
    await eventually("the other serves", async () => (await server.post("/flowers", {})).ok);
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it.each(SCREENS)(
    "has no barrier, breaks no rule of its policy and fits its screen on any page (%s, %i pixels)",
    async (...screen) => {
      const pages = PAGES.map(([name, path, content]) => [name, path(), content] as const);
      expect(await problemsOf([browser, server], pages, screen)).toEqual({});
    },
  );

  it("shows on a phone all tabs, the columns that tell a trouble, and that a table has more", async () => {
    const context = await newContext(browser, "light", 360);
    const { page } = await signedIn(context, server);
    const fits = (role: "columnheader" | "link", name: string) =>
      eventually(`${name} is on the screen`, async () => {
        const box = await page.getByRole(role, { name }).boundingBox();
        return box !== null && box.x + box.width < 360;
      });
    await fits("columnheader", "Errors/s");
    const [inner, outer, hint] = await page.evaluate<[number, number, string]>(`(() => {
      const box = document.querySelector("section[aria-label=APIs]");
      return [box.scrollWidth, box.clientWidth, getComputedStyle(box).backgroundAttachment];
    })()`);
    expect(inner).toBeGreaterThan(outer);
    expect(hint).toBe("local, local, scroll, scroll");
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers`);
    await fits("link", "Try it");
    await context.close();
  });

  it("shows numbers over 2^53 as they are", async () => {
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers?tab=try`);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText('"exact":12345678901234567890').waitFor();
    await context.close();
  });
});
