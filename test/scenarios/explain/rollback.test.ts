/** A version that fails, and the way back from it: the page of the API and the overview say the same, at each moment. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { OverviewShown } from "../../../src/contracts/http/overview-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { explained, findingOf, said } from "../../harness/explained.ts";
import { FollowedOverview } from "../../harness/followed-overview.ts";
import { TestServer } from "../../harness/server.ts";

const predictor = (body: string) =>
  `class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): ${body}\n`;
const files = (body: string) => ({
  "quern.yaml": "- name: reviews\n  predictor: {path: p.py}\n  compute: {cpu: 100m}\n",
  "p.py": predictor(body),
});
const GOOD = "return 1";
const BAD = "return 1 if payload['good'] else payload['language']";

const server = new TestServer();
let follower: FollowedOverview;
let calls: NodeJS.Timeout;
let sent = 0;
beforeAll(async () => {
  await server.start();
  server.deploy(files(GOOD));
  follower = new FollowedOverview(
    server.baseUrl,
    readFileSync(join(server.dataDir, "admin-token"), "utf8").trim(),
  );
  // Half of them fail with the bad version.
  calls = setInterval(() => void server.post("/reviews", { good: sent++ % 2 === 0 }).catch(() => {}), 50);
});
afterAll(async () => {
  clearInterval(calls);
  await follower.leave();
  await server.stop();
});

const row = (shown: OverviewShown | undefined) => shown?.apis.find(({ name }) => name === "reviews");
const titles = () => follower.shown?.attention.map(({ title }) => title) ?? [];

it("judges failures from the moment when another version serves alone", async () => {
  await eventually("requests are counted", () => (row(follower.shown)?.requests_per_s ?? 0) > 0);
  server.deploy(files(BAD));
  const isSince = ({ title }: { title: string }) => /[45]\d % of requests since then fail/.test(title);
  const failing = await findingOf(server, "predict_errors", "reviews", undefined, isSince);
  expect(said(failing)).toMatch(
    /^A new version was deployed at 20.*Z; [45]\d % of requests since then fail in predict\(\): KeyError: 'language'/,
  );
  expect(failing.cure).toMatch(/go back to an earlier version/);
  expect(failing.command).toMatch(/^quern rollback reviews [0-9a-f]{24}$/);
  expect(failing.evidence.at(-1)).toMatch(/^version [0-9a-f]{12}… replaced [0-9a-f]{12}…$/);
  await eventually("the overview says it", () => row(follower.shown)?.trouble === "failing");
  expect(titles().join()).toMatch(/requests fail with a 5xx status/);

  expect(server.cli(["rollback", "reviews"]).code).toBe(0);
  const isBack = ({ title }: { title: string }) => title.startsWith("Rolled back at ");
  const back = await findingOf(server, "predict_errors", "reviews", undefined, isBack);
  expect(back).toMatchObject({ severity: "info", cure: "" });
  expect(back.title).toMatch(/; since then \d+ requests?, 0 failed$/);
  expect(back.evidence[0]).toMatch(/^before, \d+ of \d+ requests failed in predict\(\): \d+ %$/);
  await eventually("the overview says no more", () => row(follower.shown)?.trouble === null, 3_000);
  // It stays so while good requests come.
  for (let second = 0; second < 5; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(titles()).toEqual([]);
    const { findings } = await explained(server, "reviews");
    expect(findings.filter(({ severity }) => severity !== "info")).toEqual([]);
  }
});
