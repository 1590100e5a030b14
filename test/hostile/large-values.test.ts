/** Aggregates of hundreds of megabytes: whoever asks for an application keeps nobody waiting. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApplicationState } from "../../src/contracts/config/applications.ts";
import { applicationDirectory } from "../../src/contracts/data-layout.ts";
import { applicationServer, IrisExample, lightModel } from "../harness/iris-example.ts";
import { peakMiB, resetPeak } from "../harness/peak-memory.ts";
import { longestTurnOf } from "../harness/turns.ts";

describe("an application with huge aggregates", () => {
  const server = applicationServer();
  const iris = new IrisExample(server);
  const longestTurn = longestTurnOf(server);
  let key = "";
  beforeAll(async () => {
    await server.start(longestTurn.env);
    iris.write(lightModel());
    iris.deploy();
    key = server.cli(["keys", "create", "--scope", "view"]).out.trim();
  });
  afterAll(() => server.stop());

  it("is shown without them, with a note that says where they are", async () => {
    const place = async (name: string) => {
      const { resource_id } = await iris.resource(name);
      return join(applicationDirectory(server.dataDir, "iris"), resource_id, "value.json");
    };
    const huge = await place("class_index");
    writeFileSync(huge, `{"value":["${"v".repeat(200 * 1024 * 1024)}"]}`);
    const large = JSON.stringify({ value: Array.from({ length: 50_000 }, (_, n) => n % 100) });
    for (const column of ["petal_length", "petal_width", "sepal_length", "sepal_width"])
      for (const what of ["mean", "stddev"]) writeFileSync(await place(`${column}_${what}`), large);
    const controller = server.child("controller");
    resetPeak(controller);
    const headers = { authorization: `Bearer ${key}` };
    const answers = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const response = await server.fetch("/-/applications/iris?values=true", { headers });
        return (await response.json()) as ApplicationState;
      }),
    );
    for (const { resources } of answers) {
      const found = resources.find(({ name }) => name === "class_index")!;
      expect(found.value).toBeUndefined();
      expect(found.left_out).toMatch(
        /^its value has 209715214 bytes, but a response shows .*; the whole is applications\/iris\/.*\/value.json in/,
      );
      const shown = resources.filter(({ value }) => value !== undefined);
      expect(shown.length).toBeGreaterThan(4);
      expect(JSON.stringify(shown).length).toBeLessThan(1_100_000);
    }
    expect(server.child("controller")).toBe(controller);
    expect(peakMiB(controller)).toBeLessThan(600);
    // Generous, because the machine may be busy.
    expect(longestTurn.ms()).toBeLessThan(300);
    expect(server.cli(["get", "-a", "iris", "aggregate", "class_index"]).out).toContain("the whole is");
  });
});
