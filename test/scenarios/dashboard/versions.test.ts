/** Versions of an API and rounds of a job in the pages, in a real browser: who did what, and when. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changesSchema, versionDiffSchema } from "../../../src/contracts/http/session-operations.ts";
import {
  barriers,
  hasChromium,
  newContext,
  openBrowser,
  SCREENS,
  signedIn,
  takePicture,
} from "../../harness/browser.ts";
import { deployDashboardProject, failingJob, repair } from "../../harness/dashboard-project.ts";
import { eventually } from "../../harness/eventually.ts";
import { problemsOf } from "../../harness/page-problems.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let browser: Browser;
let job = "";
const SECOND =
  "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return 2\n";

const changesOf = async (api: string) => {
  const { out, code } = server.cli(["changes", api, "-o", "json"]);
  expect(code).toBe(0);
  return changesSchema.parse(JSON.parse(out)).changes;
};

async function at(path: string, act: (page: Page) => Promise<void>): Promise<void> {
  const context = await newContext(browser);
  const { page } = await signedIn(context, server);
  await page.goto(`${server.baseUrl}/-/ui/${path}`);
  await act(page);
  await context.close();
}

describe.skipIf(!hasChromium)("the dashboard", () => {
  beforeAll(async () => {
    await server.start();
    deployDashboardProject(server);
    browser = await openBrowser();
    job = await server.submit("captions", failingJob);
    await eventually("it serves", async () => (await server.post("/flowers", {})).ok);
    await server.deployBeside({
      "quern.yaml": JSON.stringify([
        { name: "flowers", predictor: { path: "flowers.py" }, compute: { cpu: "100m" } },
      ]),
      "flowers.py": SECOND,
    });
    await server.ended("captions", job);
  });
  afterAll(async () => {
    await browser?.close();
    await server.stop();
  });

  it("lists a rollback as an entry of its own, with who did it and what changed", async () => {
    const [second, first] = await changesOf("flowers");
    await at("apis/flowers?tab=versions", async (page) => {
      await page.getByText("serves now").waitFor();
      const entry = page.locator(".versions > li");
      expect(await entry.count()).toBe(2);
      await entry.first().getByText("flowers.py").waitFor();
      await page.getByRole("button", { name: "Roll back to this" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(`Roll back to this: ${first!.api_id!.slice(0, 13)}?`).waitFor();
      await dialog.getByRole("button", { name: "Roll back to this" }).click();
      await page.getByText("Rolled back to").waitFor();
      expect(await entry.count()).toBe(3);
      const text = (await entry.first().textContent())!;
      expect(text).toMatch(/Rolled back to [0-9a-f]+/);
      expect(text).toMatch(/by admin-token/);
      expect(text).toMatch(/serves now/);
      // The way back is at the newest entry of each other version only.
      expect(await page.getByRole("button", { name: "Roll back to this" }).count()).toBe(1);
    });
    const [back, ...before] = await changesOf("flowers");
    expect(back).toMatchObject({
      ...{ kind: "rolled_back", api_id: first!.api_id, former_api_id: second!.api_id, by: "admin-token" },
    });
    expect(before).toEqual([second, first]);
    expect(server.cli(["changes", "flowers"]).out).toMatch(
      /rolled back .* admin-token\n.* deployed .*\n.* deployed/,
    );
  });

  it("shows the lines that changed from the version before", async () => {
    await at("apis/flowers?tab=versions", async (page) => {
      await page.getByRole("button", { name: "Show changed lines" }).last().click();
      const lines = page.getByRole("region", { name: "changed lines of flowers.py" });
      await lines.getByText("+    def predict(self, payload): return 2").waitFor();
      await lines.getByText('-        return {"species": "setosa"').waitFor();
      expect(await page.locator("main").getByText("broken.py").count()).toBeGreaterThan(1);
      expect(await barriers(page)).toEqual([]);
      await takePicture(page, "lines-light-1280");
    });
    const [, second, first] = await changesOf("flowers");
    const { out } = server.cli(["diff", "flowers", first!.api_id!, second!.api_id!]);
    expect(out).toMatch(/broken.py \(removed, \+0 -\d+\)/);
    expect(out).toMatch(
      /flowers.py \(changed, \+\d+ -\d+\)[\s\S]*\n\+ {4}def predict\(self, payload\): return 2/,
    );
    expect(server.cli(["diff", "flowers", "nope"]).err).toContain('flowers has no version "nope"');
  });

  it("marks deployments and rollbacks in the plots of the API, and names them below", async () => {
    await at("apis/flowers", async (page) => {
      const marks = page.getByRole("list", { name: "versions in this time" });
      await marks.getByText(/rolled back to [0-9a-f]{13} by admin-token/).waitFor();
      expect(await marks.getByText(/deployed [0-9a-f]{13} by admin-token/).count()).toBe(2);
      await page.locator(".plot canvas").first().waitFor();
      // The line of a rollback has a colour that the first plot has nowhere else.
      const orange = await page.evaluate<number>(`(() => {
        const canvas = document.querySelector(".plot canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4)
          if ([143, 90, 0].every((part, of) => Math.abs(data[at + of] - part) < 12) && data[at + 3] > 200) found++;
        return found;
      })()`);
      expect(orange).toBeGreaterThan(20);
      await marks.getByRole("link", { name: "What changed" }).click();
      await page.getByText("Rolled back to").waitFor();
    });
  });

  it("names each group of failures by its error, and shows the rounds of a job with who began them", async () => {
    repair(server);
    await at(`jobs/captions/${job}?tab=failures`, async (page) => {
      await page.getByRole("heading", { name: /image_url/ }).waitFor();
      const buttons = await page.getByRole("button", { name: /^Run these again/ }).all();
      const names = await Promise.all(buttons.map((button) => button.getAttribute("aria-label")));
      expect(names).toHaveLength(2);
      expect(names.join()).toMatch(/ValueError: item … has no caption/);
      expect(names.join()).toMatch(/KeyError: 'image_url'/);
      await page.getByRole("button", { name: /Run these again: ValueError/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Run these again: ValueError: item … has no caption?").waitFor();
      await dialog.getByRole("button", { name: "Run these again" }).click();
      await dialog.waitFor({ state: "detached" });
      await eventually(
        "the second round has ended",
        async () => (await server.job("captions", job)).end_time !== undefined,
      );
      await page.getByText(/^Round 2, begun .*, ran 4 batches: 4 succeeded, 0 failed$/).waitFor();
      await page.getByRole("link", { name: "Now", exact: true }).click();
      const rounds = page.getByRole("region", { name: "rounds of the job" });
      await rounds.getByText("errors like that of batch 7").waitFor();
      const cells = rounds.getByRole("row").nth(2).getByRole("cell");
      await eventually("it has its outcome", async () => {
        const [round, outcome, ...counts] = await cells.allTextContents();
        expect(round).toMatch(/^2 redriven by admin-token/);
        return outcome!.includes("completed with failures") && counts.slice(0, 3).join() === "0,4,4";
      });
    });
  });

  it.each(SCREENS)(
    "has no barrier on these pages, and fits its screen (%s, %i pixels)",
    async (...screen) => {
      const pages = [
        ["versions", "apis/flowers?tab=versions", "Rolled back to"],
        ["plots", "apis/flowers", "rolled back to"],
        ["rounds", `jobs/captions/${job}`, "errors like that"],
        ["failures", `jobs/captions/${job}?tab=failures`, "image_url"],
      ] as const;
      expect(await problemsOf([browser, server], pages, screen)).toEqual({});
    },
  );

  // Last: from the first key on, every request needs one.
  it("tells a view key how many lines changed, and shows it none", async () => {
    const [, second, first] = await changesOf("flowers");
    // Those who may not read the project's files learn which lines differ by their number only.
    const diffOf = (key: string) =>
      server.fetch("/-/apis/flowers/diff", { headers: { authorization: `Bearer ${key}` } });
    const view = server.cli(["keys", "create", "--scope", "view"]).out.trim();
    const seen = versionDiffSchema.parse(await (await diffOf(view)).json());
    expect([seen.from, seen.to]).toEqual([second!.api_id, first!.api_id]);
    const changed = seen.files!.find(({ path }) => path === "flowers.py")!;
    expect(changed).toMatchObject({ change: "changed", text: null });
    expect(changed.added).toBeGreaterThan(0);
    expect((await diffOf("quern_none")).status).toBe(401);
  });
});
