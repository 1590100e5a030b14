/** Makes a version the current one of its API, and records that in the history of the API. */
import { notBefore } from "../../base/clock.ts";
import { type DoneBy, NOBODY } from "../../contracts/keys.ts";
import { first, type Statements } from "../../database/database.ts";
import { noteVersion } from "../../series/change-rows.ts";
import type { AnyVersion } from "./api-rows.ts";

/** How it becomes the current one, and who makes it so. */
export interface VersionChange {
  change?: "deployed" | "rolled_back";
  by?: DoneBy;
}

export async function saveVersion(
  tx: Statements,
  version: AnyVersion,
  { change = "deployed", by = NOBODY }: VersionChange = {},
): Promise<void> {
  const { name, api_id, predictor_id, project_id, config, configText, submitted } = version;
  // The history is sorted by these times, so the latest deployment must have the newest time even if the clock was
  // changed.
  const newest = await first<{ time: string | null }>(
    tx,
    "SELECT max(deployed_time) AS time FROM api_versions WHERE name = ?",
    [name],
  );
  const deployed_time = notBefore(version.deployed_time, newest?.time ?? undefined);
  await tx.run(
    `INSERT INTO api_versions (name, api_id, predictor_id, spec_json, project_id, deployed_time) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (name, api_id) DO UPDATE SET deployed_time = excluded.deployed_time, spec_json = excluded.spec_json`,
    [
      name,
      api_id,
      predictor_id,
      JSON.stringify({ config, configText, submitted }),
      project_id,
      deployed_time,
    ],
  );
  const before = await first<{ api_id: string }>(tx, "SELECT api_id FROM apis WHERE name = ?", [name]);
  await noteVersion(
    tx,
    { api: name, id: api_id, former: before?.api_id, by },
    change,
    Date.parse(deployed_time) / 1000,
  );
  await tx.run(
    `INSERT INTO apis (name, kind, api_id, deployed_time) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET api_id = excluded.api_id, deployed_time = excluded.deployed_time`,
    [name, config.kind, api_id, deployed_time],
  );
}
