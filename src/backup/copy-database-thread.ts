/**
 * The thread that copies an SQLite database as it is at one moment (pinned-database.ts). It posts "ready", waits for a
 * message, begins to read ("pinned": what is committed later is not in the copy), copies, and posts "copied".
 */
import { parentPort, workerData } from "node:worker_threads";
import { openSqlite, type SqliteDriver } from "../database/sqlite-drivers.ts";

const { file, target } = workerData as { file: string; target: string };

function copySchema(driver: SqliteDriver, type: "table" | "index"): void {
  const rows = driver.all(
    "SELECT name, sql FROM main.sqlite_schema WHERE type = ? AND sql IS NOT NULL AND name NOT LIKE 'sqlite^_%' ESCAPE '^'",
    [type],
  );
  for (const { name, sql } of rows) {
    driver.exec(String(sql).replace(/^CREATE (TABLE|(?:UNIQUE )?INDEX) /, "CREATE $1 copy."));
    if (type === "table") driver.exec(`INSERT INTO copy."${name}" SELECT * FROM main."${name}"`);
  }
}

const driver = openSqlite(file);
driver.exec("PRAGMA busy_timeout = 60000");
driver.run("ATTACH ? AS copy", [target]);
// Nobody reads the copy before it is complete.
driver.exec("PRAGMA copy.journal_mode = OFF");
driver.exec("PRAGMA copy.synchronous = OFF");
parentPort!.once("message", () => {
  driver.exec("BEGIN");
  driver.all("SELECT count(*) FROM main.sqlite_schema", []);
  parentPort!.postMessage("pinned");
  copySchema(driver, "table");
  copySchema(driver, "index");
  driver.exec("COMMIT");
  driver.close();
  parentPort!.postMessage("copied");
});
parentPort!.postMessage("ready");
