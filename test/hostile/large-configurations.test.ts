/**
 * Many APIs with large configurations: lists and health checks delay nobody, however many are asked for at once, and
 * show what is deployed now.
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityOf } from "../../src/apis/records/api-rows.ts";
import { saveVersion } from "../../src/apis/records/save-version.ts";
import { apiSchema } from "../../src/contracts/config/apis.ts";
import { LISTS_OF_A_KEY_MAX } from "../../src/contracts/limits/responses.ts";

import { eventually } from "../harness/eventually.ts";
import { ECHO } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";
import { longestTurnOf } from "../harness/turns.ts";

const APIS = 60;
/** Nearly as long as one may be, with as many names as fit. */
const LARGE = Object.fromEntries(Array.from({ length: 18_000 }, (_, n) => [`k${n.toString(36)}`, n]));

interface View {
  name: string;
  spec: { predictor: { config: Record<string, unknown> } };
}

describe("many APIs with large configurations", () => {
  const server = new TestServer();
  const longestTurn = longestTurnOf(server);
  let key = "";
  beforeAll(async () => {
    await server.start(longestTurn.env);
    server.deploy({
      "quern.yaml": "- {name: first, kind: BatchAPI, predictor: {path: p.py}}\n",
      "p.py": ECHO,
    });
    key = server.cli(["keys", "create", "--scope", "view"]).out.trim();
    for (let n = 0; n < APIS; n++) await save(`api${n}`, { ...LARGE, password: "s3cr3t" });
  });
  afterAll(() => server.stop());

  /** As if it had been deployed: a file has at most 1 MiB, so that deploying all takes long. */
  const save = async (name: string, config: object) => {
    const db = server.openDatabase();
    const [first] = await db.all<{ project_id: string }>("SELECT project_id FROM api_versions");
    const { project_id } = first!;
    const configText = JSON.stringify(config);
    const entry = { name, kind: "BatchAPI", predictor: { path: "p.py", config } };
    const api = apiSchema.parse(entry) as never;
    const submitted = JSON.stringify(entry);
    const version = {
      name,
      ...identityOf(api, configText, project_id),
      project_id,
      config: api,
      configText,
      submitted,
    };
    const deployed_time = new Date().toISOString().replace("Z", "000000Z");
    await db.transaction((tx) => saveVersion(tx, { ...version, deployed_time }));
    await db.close();
  };
  const get = async (path: string) => {
    const response = await server.fetch(path, { headers: { authorization: `Bearer ${key}` } });
    return { status: response.status, text: await response.text() };
  };
  const list = async () => (JSON.parse((await get("/-/apis")).text) as { apis: View[] }).apis;

  it("are listed and checked in small steps", async () => {
    const asked = [
      ...Array.from({ length: 4 }, () => "/-/apis"),
      ...Array.from({ length: 20 }, () => "/-/healthz"),
      ...Array.from({ length: 10 }, (_, n) => `/-/apis/api${n}`),
    ];
    const answers = await Promise.all(asked.map(get));
    expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 200));
    for (const { text } of answers) expect(text).not.toContain("s3cr3t");
    const { apis } = JSON.parse(answers[0]!.text) as { apis: View[] };
    expect(apis).toHaveLength(APIS + 1);
    expect(apis[0]!.spec.predictor.config).toEqual({ ...LARGE, password: "***" });
    // The limit is generous because the machine may be busy. It took 10 seconds.
    expect(longestTurn.ms()).toBeLessThan(300);
  }, 120_000);

  it("are shown as they are deployed now", async () => {
    await list();
    await save("api7", { size: 1 });
    const shown = (await list()).find(({ name }) => name === "api7");
    expect(shown!.spec.predictor.config).toEqual({ size: 1 });
    const { submitted_api_spec } = JSON.parse((await get("/-/apis/api7")).text) as Record<string, unknown>;
    expect(submitted_api_spec).toMatchObject({ predictor: { config: { size: 1 } } });
    expect(server.cli(["delete", "api7"]).code).toBe(0);
    expect((await list()).map(({ name }) => name)).not.toContain("api7");
  }, 60_000);

  it("are refused if a key reads too many such lists at once", async () => {
    const headers = { authorization: `Bearer ${key}` };
    const unread = Array.from({ length: LISTS_OF_A_KEY_MAX }, () =>
      request(`${server.baseUrl}/-/apis`, { headers }).end(),
    );
    try {
      const heads = await Promise.all(unread.map((asked) => once(asked, "response")));
      expect(heads.map(([answer]) => (answer as IncomingMessage).statusCode)).toEqual(unread.map(() => 200));
      const { status, text } = await get("/-/apis");
      expect([status, text]).toEqual([429, expect.stringContaining("read one to its end first")]);
      expect((await get("/-/healthz")).status).toBe(200);
    } finally {
      for (const asked of unread) asked.on("error", () => {}).destroy();
    }
    await eventually("another one is allowed", async () => (await get("/-/apis")).status === 200);
  }, 120_000);
});
