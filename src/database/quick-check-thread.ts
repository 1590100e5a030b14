/**
 * The thread that checks a database after an unclean stop (open-database.ts). It posts the problems that `PRAGMA
 * quick_check` finds.
 */
import { parentPort, workerData } from "node:worker_threads";
import { isDamaged, openSqlite } from "./sqlite-drivers.ts";

const PROBLEMS_SHOWN = 3;

function problemsOf(file: string): string[] {
  try {
    const driver = openSqlite(file);
    driver.exec("PRAGMA busy_timeout = 60000");
    const rows = driver.all(`PRAGMA quick_check(${PROBLEMS_SHOWN})`, []);
    driver.close();
    return rows.map((row) => String(row.quick_check)).filter((text) => text !== "ok");
  } catch (error) {
    if (!isDamaged(error)) throw error;
    return [(error as Error).message];
  }
}

parentPort!.postMessage(problemsOf(workerData as string));
