/** The pages of declarative applications, in a real browser: their graph, and their buttons. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, newContext, openBrowser, openTab, SCREENS, signedIn } from "../../harness/browser.ts";
import { eventually } from "../../harness/eventually.ts";
import { applicationServer, IrisExample, lightModel, SETOSA } from "../../harness/iris-example.ts";
import { problemsOf } from "../../harness/page-problems.ts";

const server = applicationServer();
const iris = new IrisExample(server);
let browser: Browser;

const PAGES = [
  ["application", "applications/iris", "ready"],
  ["application-resource", "applications/iris?resource=model/dnn", "ready"],
  ["applications", "applications", "ready"],
] as const;

async function withPage(path: string, act: (page: Page) => Promise<void>): Promise<void> {
  const context = await newContext(browser);
  const { page } = await signedIn(context, server);
  await page.goto(`${server.baseUrl}/-/ui/${path}`);
  await act(page);
  await context.close();
}

/** Presses a button, and the one of the dialog that asks. */
async function confirm(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name }).click();
  await page.getByRole("dialog").getByRole("button", { name }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

describe.skipIf(!hasChromium)("an application's page", () => {
  beforeAll(async () => {
    await server.start();
    iris.write(lightModel());
    iris.deploy();
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it.each(SCREENS)("has no barrier, and fits its screen (%s, %i pixels)", async (...screen) => {
    expect(await problemsOf([browser, server], PAGES, screen)).toEqual({});
  });

  it("shows a resource of the graph in detail, by a click and by the keyboard", async () => {
    await withPage("applications/iris", async (page) => {
      await page.getByRole("link", { name: "sepal_length_mean aggregate" }).click();
      await page.getByRole("heading", { name: "aggregate sepal_length_mean" }).waitFor();
      await page.getByText("Began").waitFor();
      await page.getByRole("link", { name: "dnn model" }).focus();
      await page.keyboard.press("Enter");
      await page.getByText("accuracy =").waitFor();
    });
  });

  it("computes everything anew when its data is to be read again", async () => {
    const before = await iris.resource("dnn");
    await withPage("applications/iris", async (page) => {
      await confirm(page, "Refresh");
      await page.locator(".page-head").getByText("computing").waitFor();
      await eventually("the model is a new one", async () => {
        const { status, started_time } = await iris.resource("dnn");
        return status === "ready" && started_time !== before.started_time;
      });
      await page.locator(".page-head").getByText("ready").waitFor();
    });
    expect((await server.post("/iris/iris-type", SETOSA)).status).toBe(200);
  });

  it("is offered without its buttons to a key that only sees", async () => {
    const view = server.cli(["keys", "create", "--scope", "view"]).out.trim();
    const context = await newContext(browser);
    const { page } = await openTab(context, `${server.baseUrl}/-/ui/applications/iris`);
    await page.getByLabel(/key/i).fill(view);
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "dnn model" }).waitFor();
    expect(await page.getByRole("button", { name: /Refresh|Delete/ }).count()).toBe(0);
    await context.close();
  });

  it("is deleted once its name is typed, and is no longer in the list", async () => {
    await withPage("applications/iris", async (page) => {
      await page.getByRole("button", { name: "Delete" }).click();
      const dialog = page.getByRole("dialog");
      const button = dialog.getByRole("button", { name: "Delete" });
      await dialog.getByRole("textbox").fill("iri");
      expect(await button.isDisabled()).toBe(true);
      await dialog.getByRole("textbox").fill("iris");
      await button.click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("No declarative application is deployed").waitFor();
    });
    expect((await server.post("/iris/iris-type", SETOSA)).status).not.toBe(200);
  });
});
