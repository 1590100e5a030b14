/** The workers of a job over time, on its page. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  barriers,
  hasChromium,
  newContext,
  openBrowser,
  SCREENS,
  signedIn,
  takePicture,
} from "../../harness/browser.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.until = config["until"]
        time.sleep(0.5)
    def predict(self, payload):
        time.sleep(0.2)
        if payload[0] in (3, 7): os._exit(3)
        while payload[0] == 11 and not os.path.exists(self.until): time.sleep(0.02)
        return payload
`;

describe.skipIf(!hasChromium)("the page of a job", () => {
  const server = new TestServer();
  const until = join(server.dir, "until");
  let browser: Browser;
  let job = "";
  beforeAll(async () => {
    await server.start();
    const config = `- name: captions\n  kind: BatchAPI\n  compute: {cpu: 100m}\n  predictor: {path: p.py, config: {until: ${until}}}\n`;
    await server.deployBeside({ "quern.yaml": config, "p.py": PREDICTOR });
    const items = Array.from({ length: 12 }, (_, item) => item);
    job = await server.submit("captions", { workers: 2, item_list: { items, batch_size: 1 } });
    browser = await openBrowser();
  });
  afterAll(async () => {
    writeFileSync(until, "");
    await browser?.close();
    await server.stop();
  });

  it.each(SCREENS)(
    "shows when each worker worked, and why it ended (%s, %i pixels)",
    async (scheme, width) => {
      const context = await newContext(browser, scheme, width);
      const { page, faults } = await signedIn(context, server);
      await page.goto(`${server.baseUrl}/-/ui/jobs/captions/${job}`);
      const table = page.getByRole("region", { name: "workers over time" });
      await table.getByText("batch 11 for").waitFor();
      await table.getByText("died: exited with code 3 with batch 3 in hand").waitFor();
      await table.getByText("died: exited with code 3 with batch 7 in hand").waitFor();
      expect(await barriers(page)).toEqual([]);
      expect(faults).toEqual([]);
      await takePicture(page, `job-workers-${scheme}-${width}`);
      const beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect(await page.evaluate<number>(beyond)).toBeLessThanOrEqual(0);
      await context.close();
    },
  );

  it("follows them until the job ends", async () => {
    const context = await newContext(browser);
    const { page } = await signedIn(context, server);
    await page.goto(`${server.baseUrl}/-/ui/jobs/captions/${job}`);
    const table = page.getByRole("region", { name: "workers over time" });
    await table.getByText("batch 11 for").waitFor();
    writeFileSync(until, "");
    await table.getByText("batch 11 for").waitFor({ state: "detached" });
    await table
      .getByText(/^.ended$/)
      .first()
      .waitFor();
    await context.close();
  });
});
