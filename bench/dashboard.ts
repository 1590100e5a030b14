/**
 * The dashboard on a large installation: 500 APIs, 10,000 jobs and a million failures, in a real browser. Measures the
 * first view, filters, how soon a change is shown, the browser's memory after an hour of updates, and what ten open
 * dashboards cost the controller.
 */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { newContext, openBrowser, openTab, signedIn, signInUrl } from "../test/harness/browser.ts";
import { deployDashboardProject, failingJob } from "../test/harness/dashboard-project.ts";
import { TestServer } from "../test/harness/server.ts";
import { busyStream } from "./dashboard/busy-stream.ts";
import { addFailures, copyJobs } from "./dashboard/seed.ts";
import { cpuSeconds, median, report } from "./measure.ts";

const APIS = 500;
const JOBS = 10_000;
const FAILURES = 1_000_000;
const ROUNDS = 5;
const VIEW_MS = 300;
const HEAP_MIB = 60;
const HOUR_OF_UPDATES = 3600;
const UPDATE_EVERY_MS = 20;
const UPDATES = 10;
const UPDATE_MS = 1000;
const DASHBOARDS = 10;
const WATCHED_MS = 30_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export async function benchDashboard(): Promise<void> {
  const server = new TestServer();
  await server.start();
  const job = await seeded(server);
  const browser = await openBrowser();
  await measureViews(server, browser, job);
  await measureUpdates(server, browser);
  await measureHeap(server, browser);
  await measureControllers(server, browser);
  await browser.close();
  await server.stop();
}

/** No API has a replica but one: 500 processes would be measured instead of the dashboard. */
async function seeded(server: TestServer): Promise<string> {
  deployDashboardProject(server);
  const job = await server.submit("captions", failingJob);
  await server.ended("captions", job);
  const apis = Array.from({ length: APIS }, (_, n) =>
    n % 2 === 0
      ? { name: `split-${n}`, kind: "TrafficSplitter", apis: [{ name: "flowers", weight: 100 }] }
      : { name: `batch-${n}`, kind: "BatchAPI", predictor: { path: "p.py" } },
  );
  const predictor =
    "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return 1\n";
  server.deploy({ "quern.yaml": JSON.stringify(apis), "p.py": predictor }, { wait: false });
  // Each try to start it is told to all gateways, with the routes of all APIs.
  server.cli(["delete", "broken", "-y"]);
  await server.stopProcesses();
  const db = server.openDatabase();
  await copyJobs(db, job, JOBS);
  await addFailures(db, job, FAILURES);
  await db.close();
  await server.start();
  return job;
}

/** Milliseconds from the first byte of a page until `selector` is drawn with `text` in it. */
async function viewMs(page: Page, url: string, ready: string): Promise<number> {
  await page.addInitScript(`
    const look = () => {
      if (${ready}) requestAnimationFrame(() => { globalThis.drawnMs ??= performance.now(); });
      else requestAnimationFrame(look);
    };
    look();
  `);
  await page.goto(url);
  return page.evaluate<number>(`new Promise((resolve) => {
    const look = () => globalThis.drawnMs === undefined ? setTimeout(look, 5)
      : resolve(globalThis.drawnMs - performance.getEntriesByType("navigation")[0].responseStart);
    look();
  })`);
}

async function measureViews(server: TestServer, browser: Browser, job: string): Promise<void> {
  const base = `${server.baseUrl}/-/ui`;
  const views: [string, string, string][] = [
    ["overview", `${base}/`, 'document.querySelectorAll("main tbody tr").length > 10'],
    ["all APIs", `${base}/apis`, 'document.querySelectorAll("main tbody tr").length > 90'],
    ["jobs", `${base}/jobs`, 'document.querySelectorAll("main tbody tr").length > 40'],
    [
      "jobs, filtered by status",
      `${base}/jobs?status=status_timed_out`,
      'document.querySelectorAll("main tbody tr").length > 40',
    ],
    [
      "jobs, searched",
      `${base}/jobs?search=captions`,
      'document.querySelectorAll("main tbody tr").length > 40',
    ],
    [
      "job with a million failures",
      `${base}/jobs/captions/${job}`,
      'document.querySelector(".large-progress") !== null',
    ],
  ];
  for (const [name, url, ready] of views) {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const context = await newContext(browser);
      const { page } = await signedIn(context, server);
      times.push(await viewMs(page, url, ready));
      await context.close();
    }
    const ms = median(times);
    report(`${name}: drawn after its first byte, ms`, ms, `< ${VIEW_MS}`, ms < VIEW_MS);
  }
}

/** From the request that changes an API until the list that somebody else has open shows it. */
async function measureUpdates(server: TestServer, browser: Browser): Promise<void> {
  const context = await newContext(browser);
  const { page } = await signedIn(context, server);
  await page.goto(`${server.baseUrl}/-/ui/apis?search=batch-1`);
  const status = page
    .locator("main tbody tr")
    .filter({ hasText: /^batch-1\D/ })
    .locator(".status");
  await status.filter({ hasText: "live" }).waitFor();
  const authorization = `Bearer ${readFileSync(join(server.dataDir, "admin-token"), "utf8").trim()}`;
  const times: number[] = [];
  for (let n = 0; n < UPDATES; n++) {
    // At any moment between two reports of the server.
    await pause(1_000 + n * 100);
    const [action, shown] = n % 2 === 0 ? ["pause", "paused"] : ["unpause", "live"];
    const began = performance.now();
    await server.fetch(`/-/apis/batch-1/${action}`, { method: "POST", headers: { authorization } });
    await status.filter({ hasText: shown }).waitFor();
    times.push(performance.now() - began);
  }
  const ms = Math.max(...times);
  report("a change is shown after, the longest of ten, ms", ms, `< ${UPDATE_MS}`, ms < UPDATE_MS);
  await context.close();
}

async function measureHeap(server: TestServer, browser: Browser): Promise<void> {
  const { server: proxy, ended } = busyStream(server.baseUrl, HOUR_OF_UPDATES, UPDATE_EVERY_MS);
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const front = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const context = await newContext(browser);
  const { page } = await openTab(context, signInUrl(server).replace(server.baseUrl, front));
  await ended;
  const devtools = await context.newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = (await devtools.send("Runtime.getHeapUsage")) as { usedSize: number };
  const mib = usedSize / 1024 / 1024;
  report("heap of a tab after an hour of updates, MiB", mib, `<= ${HEAP_MIB}`, mib <= HEAP_MIB);
  await context.close();
  proxy.closeAllConnections();
  proxy.close();
}

async function measureControllers(server: TestServer, browser: Browser): Promise<void> {
  const pid = server.child("controller");
  const percent = async () => {
    const before = cpuSeconds(pid);
    await pause(WATCHED_MS);
    return ((cpuSeconds(pid) - before) / WATCHED_MS) * 100_000;
  };
  const alone = await percent();
  const contexts = await Promise.all(Array.from({ length: DASHBOARDS }, () => newContext(browser)));
  for (const context of contexts) await signedIn(context, server);
  await pause(2_000);
  const followed = (await percent()) - alone;
  for (const context of contexts) await context.close();
  console.log(`       controller without a dashboard: ${alone.toFixed(2)} % of a core`);
  report("ten open dashboards, controller, percent of a core", followed, "< 2", followed < 2);
}
