/** What is said about an API whose packages are being installed for long. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiReader } from "../../src/apis/api-reader.ts";
import type { AnyVersion } from "../../src/apis/records/api-rows.ts";
import { saveVersion } from "../../src/apis/records/save-version.ts";
import type { Replicas } from "../../src/apis/replicas/replicas.ts";
import { INSTALLATION_LONG_MS } from "../../src/contracts/limits/configuration.ts";
import { type TemporaryDatabase, temporaryDatabase } from "../harness/temporary-database.ts";

let temporary: TemporaryDatabase;
beforeAll(async () => {
  temporary = await temporaryDatabase();
  const save = (name: string, project_id: string, python?: string) => {
    const config = { name, kind: "BatchAPI", predictor: { path: "p.py", python }, networking: {} };
    const version = { name, api_id: "id", predictor_id: "p", project_id, deployed_time: "2026", config };
    return temporary.db.transaction((tx) =>
      saveVersion(tx, { ...version, configText: "{}" } as unknown as AnyVersion),
    );
  };
  await save("a", "slow");
  await save("b", "slow", "3.9");
  await save("c", "other");
});
afterAll(() => temporary.remove());

const messages = async (slowMs: number) => {
  const replicas = { group: () => undefined } as unknown as Replicas;
  const installing = new Map([["slow", slowMs]]);
  const states = await new ApiReader(temporary.db, replicas, (user) => installing.get(user)).list();
  return states.map(({ message }) => message);
};

it("its status says since when, once that is longer than ten minutes, and that of no other API", async () => {
  expect(await messages(INSTALLATION_LONG_MS - 1)).toEqual([undefined, undefined, undefined]);
  const [message, ...others] = await messages(INSTALLATION_LONG_MS);
  expect(others).toEqual([undefined, undefined]);
  const since = /^the installation of its packages began at (\S+Z) and still runs; /.exec(message!)![1]!;
  const ageMs = Date.now() - Date.parse(since);
  expect(ageMs).toBeGreaterThanOrEqual(INSTALLATION_LONG_MS - 10);
  expect(ageMs).toBeLessThan(INSTALLATION_LONG_MS + 60_000);
});
