/** A real browser on the dashboard of a real server. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { TestServer } from "./server.ts";

/** Where the pictures of the pages go, for a person to look at; undefined takes none. */
const PICTURES = process.env.QUERN_PICTURES;

export type Scheme = "light" | "dark";

/** The schemes and widths in which a page is looked at. */
export const SCREENS = [
  ["light", 1280],
  ["dark", 1280],
  ["light", 360],
] as const;

export interface Tab {
  page: Page;
  /** What no page may have: errors of its scripts, violations of its policy, requests to other hosts. */
  faults: string[];
}

const found = spawnSync("which", ["chromium"], { encoding: "utf8" });
export const hasChromium = found.status === 0;

/** The browser on the path: playwright-core brings none. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: found.stdout.trim(), args: ["--no-sandbox"] });
}

export function newContext(
  browser: Browser,
  colorScheme: Scheme = "light",
  width = 1280,
): Promise<BrowserContext> {
  return browser.newContext({ colorScheme, viewport: { width, height: 900 }, timezoneId: "Europe/Berlin" });
}

/** Opens an address in a new tab, and notes every fault from then on. */
export async function openTab(context: BrowserContext, url: string): Promise<Tab> {
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    // The browser logs each response that is an error, such as while the server starts again.
    if (message.type() === "error" && !text.startsWith("Failed to load resource"))
      faults.push(`console: ${text}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`) && !request.url().startsWith("blob:"))
      faults.push(`another host: ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
}

/** The address that signs in, as `quern ui` prints it. */
export function signInUrl(server: TestServer): string {
  const { code, out, err } = server.cli(["ui", "--print"]);
  if (code !== 0) throw new Error(err);
  return out.trim().split("\n").at(-1)!.trim();
}

/** Opens the overview as somebody with the admin token. */
export async function signedIn(context: BrowserContext, server: TestServer): Promise<Tab> {
  const tab = await openTab(context, signInUrl(server));
  await tab.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
  return tab;
}

/** What axe finds wrong on a page, each with the elements. */
export async function barriers(page: Page): Promise<string[]> {
  // Not as an element of the page: its policy allows no inline script.
  await page.evaluate(axe.source);
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<import("axe-core").AxeResults> } };
    return (await axe.run()).violations;
  });
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`,
  );
}

export async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}
