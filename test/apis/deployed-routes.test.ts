/** The routes of the deployed versions: published one after the other, and large configurations read in slices. */
import { beforeAll, expect, it } from "vitest";
import type { ApiReader } from "../../src/apis/api-reader.ts";
import { DeployedRoutes, type DeployedRoutesDeps } from "../../src/apis/deployed-routes.ts";
import { type AnyVersion, readDeployed } from "../../src/apis/records/api-rows.ts";
import { saveVersion } from "../../src/apis/records/save-version.ts";
import type { Database } from "../../src/database/database.ts";
import { temporaryDatabase } from "../harness/temporary-database.ts";
import { countTurns } from "../harness/turns.ts";

const APIS = 60;
let db: Database;

beforeAll(async () => {
  const temporary = await temporaryDatabase();
  db = temporary.db;
  const config = Object.fromEntries(Array.from({ length: 18_000 }, (_, n) => [`k${n.toString(36)}`, n]));
  for (let n = 0; n < APIS; n++) await save(`api${n}`, config);
  return temporary.remove;
});

function save(name: string, config: object): Promise<void> {
  const deployed_time = "2026-01-01T00:00:00.000000000Z";
  const ids = { api_id: "id", predictor_id: "p", project_id: "p" };
  const api = { name, kind: "BatchAPI", predictor: { path: "p.py", config }, networking: {} };
  const version = { name, ...ids, deployed_time, config: api, configText: JSON.stringify(config) };
  return db.transaction((tx) => saveVersion(tx, version as unknown as AnyVersion));
}

it("many large configurations are read in several turns of the event loop", async () => {
  const { result, turns } = await countTurns(() => readDeployed(db));
  expect(result.versions).toHaveLength(APIS);
  expect(turns).toBeGreaterThan(5);
});

it("those that ask while routes are being published share the next publication, which is of what is there then", async () => {
  const published: string[][] = [];
  const deps = {
    db,
    replicas: { group: () => undefined },
    // A route that cannot be made is named as missing: here, all of them.
    routes: {
      publish: (_: unknown, missing: { name: string }[]) => published.push(missing.map(({ name }) => name)),
    },
    keys: { isAny: () => false, areAny: false, forGateways: () => [] },
    deployed: { stateOf: () => ({ status: "live" }) } as unknown as ApiReader,
  };
  const routes = new DeployedRoutes(deps as unknown as DeployedRoutesDeps);
  const first = routes.publish();
  // It reads already.
  await new Promise((resolve) => setImmediate(resolve));
  await save("late", {});
  const others = Array.from({ length: 5 }, () => routes.publish());
  await Promise.all([first, ...others]);
  expect(published).toHaveLength(2);
  expect(published[0]).not.toContain("late");
  expect(published[1]).toContain("late");
});
