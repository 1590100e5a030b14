/** The deletion of an API whose files cannot be removed. */
import { mkdirSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { expect, it } from "vitest";
import { Apis, type ApisDeps } from "../../src/apis/apis.ts";
import type { AnyVersion } from "../../src/apis/records/api-rows.ts";
import { saveVersion } from "../../src/apis/records/save-version.ts";
import { apiLogDirectory } from "../../src/contracts/data-layout.ts";
import { temporaryDatabase } from "../harness/temporary-database.ts";

it("succeeds, and the log says which files stay", async () => {
  const { db, directory: dataDir, remove } = await temporaryDatabase();
  const config = { name: "a", kind: "BatchAPI", predictor: { path: "p.py" }, networking: {} };
  const ids = { api_id: "id", predictor_id: "p", project_id: "p" };
  const version = { name: "a", ...ids, deployed_time: "2026-01-01T00:00:00Z", config, configText: "{}" };
  await db.transaction((tx) => saveVersion(tx, version as unknown as AnyVersion));
  // Whoever looks for the log of the API fails (ELOOP).
  const logs = dirname(apiLogDirectory(dataDir, "a"));
  mkdirSync(dirname(logs), { recursive: true });
  symlinkSync(logs, logs);
  const logged: unknown[] = [];
  const log = { info: () => {}, error: ({ event }: { event: string }) => logged.push(event) };
  const deps = {
    ...{ db, patientDb: db, dataDir, log },
    replicas: { group: () => undefined, serve: () => {}, reconcile: async () => {} },
    installingMs: () => undefined,
    routes: { publish: () => {} },
    keys: { serve: () => {}, isAny: () => false, areAny: false, forGateways: () => [] },
    closeJobsOf: async () => {},
    stopJobsOf: async () => {},
  };
  const apis = new Apis(deps as unknown as ApisDeps);
  await apis.delete("a");
  expect(await apis.deployed.isDeployed("a")).toBe(false);
  expect(logged).toEqual(["api_files_stay"]);
  await remove();
});
