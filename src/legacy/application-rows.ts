/** The rows of applications: what was deployed last under each name. */
import { type Database, first } from "../database/database.ts";

export interface ApplicationRecord {
  name: string;
  project_id: string;
  /** The user's name for the `app.yaml`, and its text. */
  config_file: string;
  config_text: string;
  environment: string;
  /** Version of the data: a time that changes with each refresh. */
  data_version: string;
  deployed_time: string;
}

export function allApplications(db: Database): Promise<ApplicationRecord[]> {
  return db.all<ApplicationRecord>("SELECT * FROM applications ORDER BY name");
}

export function findApplication(db: Database, name: string): Promise<ApplicationRecord | undefined> {
  return first<ApplicationRecord>(db, "SELECT * FROM applications WHERE name = ?", [name]);
}

export async function saveApplication(db: Database, record: ApplicationRecord): Promise<void> {
  const { name, project_id, config_file, config_text, environment, data_version, deployed_time } = record;
  const values = [name, project_id, config_file, config_text, environment, data_version, deployed_time];
  await db.transaction(async (tx) => {
    await tx.run("DELETE FROM applications WHERE name = ?", [name]);
    await tx.run("INSERT INTO applications VALUES (?, ?, ?, ?, ?, ?, ?)", values);
  });
}

export async function deleteApplication(db: Database, name: string): Promise<void> {
  await db.run("DELETE FROM applications WHERE name = ?", [name]);
}
