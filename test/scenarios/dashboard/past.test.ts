/** Somebody finds out in the dashboard which time an API was slow at, and why. The clock of the server moves on. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Series } from "../../../src/contracts/http/series-operations.ts";
import {
  barriers,
  hasChromium,
  newContext,
  openBrowser,
  SCREENS,
  signedIn,
  takePicture,
} from "../../harness/browser.ts";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";

const predictor = (seconds: number) => `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        time.sleep(${seconds})
        return 1
`;
const CONFIG = "- name: flowers\n  compute: {cpu: 50m}\n  predictor: {path: p.py}\n";
const NORMAL_MINUTES = 8;
const MINUTE_MS = 60_000;

describe.skipIf(!hasChromium)("the page of an API that was slow", () => {
  const server = new TestServer();
  const clock = join(server.dir, "clock");
  let browser: Browser;
  let movedMs = 0;
  let sent = 0;
  const move = (ms: number) => {
    movedMs += ms;
    writeFileSync(clock, String(movedMs));
  };
  const send = async (times: number) => {
    for (let at = 0; at < times; at++) await server.post("/flowers", {});
    sent += times;
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    await eventually("the requests are in the series", async () => {
      const response = await server.fetch("/-/series?metric=requests&from=5h", { headers });
      return (((await response.json()) as Series).metrics[0]?.total ?? 0) >= sent;
    });
  };
  beforeAll(async () => {
    move(0);
    const settable = `--import=${join(root, "test", "harness", "settable-clock.mjs")}`;
    await server.start({ NODE_OPTIONS: settable, FAKE_CLOCK: clock });
    await server.deployBeside({ "quern.yaml": CONFIG, "p.py": predictor(0.1) });
    for (let at = 0; at < NORMAL_MINUTES; at++) {
      move(MINUTE_MS);
      await send(4);
    }
    move(MINUTE_MS);
    await server.deployBeside({ "quern.yaml": CONFIG, "p.py": predictor(1.2) });
    await send(6);
    move(MINUTE_MS);
    await server.deployBeside({ "quern.yaml": CONFIG, "p.py": predictor(0.11) });
    for (let at = 0; at < 4; at++) {
      move(MINUTE_MS);
      await send(4);
    }
    browser = await openBrowser();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it.each(SCREENS)("leads to that time and to what changed before (%s, %i pixels)", async (scheme, width) => {
    const context = await newContext(browser, scheme, width);
    const { page, faults } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers`);
    await page.getByText(/Requests were slow from .*; it is over/).waitFor();
    await page.getByRole("link", { name: "Look at that time" }).click();
    await page.getByText(/A new version was deployed at \d\d:\d\d/).waitFor();
    await page
      .getByText(/95 % took up to [\d.]+ s instead of/)
      .first()
      .waitFor();
    await page.getByText("Requests per second").waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(faults).toEqual([]);
    await takePicture(page, `api-past-${scheme}-${width}`);
    const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await page.evaluate<number>(beyond)).toBeLessThanOrEqual(0);
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByText(/A new version was deployed at/).waitFor({ state: "detached" });
    await context.close();
  });

  it("leads to the two versions that it compares, with their lines, and back", async () => {
    const context = await newContext(browser);
    const { page, faults } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers`);
    await page.getByRole("link", { name: "Look at that time" }).click();
    const card = page.locator(".finding").filter({ hasText: "A new version was deployed at" }).last();
    await card.getByRole("link", { name: "Compare the versions" }).click();
    const pair = page.locator(".versions > li.asked");
    await pair.getByText("time.sleep(1.2)").waitFor();
    await pair.getByText("time.sleep(0.1)").waitFor();
    expect(await page.locator(".versions > li").count()).toBe(3);
    expect(await pair.count()).toBe(1);
    const { y: top } = (await pair.boundingBox())!;
    expect(top).toBeGreaterThanOrEqual(0);
    expect(top).toBeLessThan(900);
    expect(await barriers(page)).toEqual([]);
    await takePicture(page, "versions-compared-light-1280");
    await page.getByRole("link", { name: /^Back to what was at/ }).click();
    await page.getByRole("heading", { name: /^What was at/ }).waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("explains the minute of a click on a plot, and the one that is typed", async () => {
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/apis/flowers`);
    const plot = page.getByRole("img", { name: /^Latency/ }).locator(".u-over");
    const { width, height } = (await plot.boundingBox())!;
    await plot.click({ position: { x: width - 2, y: height / 2 } });
    await page.getByRole("heading", { name: /What was at \d\d:\d\d/ }).waitFor();
    const clicked = new URL(page.url()).searchParams.get("at")!;
    expect(clicked).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/);
    // The field has local time, and the address UTC.
    const field = page.getByLabel("Explain a time");
    const local = await field.inputValue();
    await field.fill(`${local.slice(0, 11)}${local.endsWith("00:00") ? "00:01" : "00:00"}`);
    await eventually("the address has it", () => new URL(page.url()).searchParams.get("at") !== clicked);
    await context.close();
  });
});
