/** What `quern doctor` says about the state of a server (`--state`). It changes nothing there. */
import { processLog } from "./base/log.ts";
import { openState } from "./controller/settle-state.ts";
import type { Database } from "./database/database.ts";
import { readPostgres } from "./database/postgres/read-postgres.ts";
import type { DatabaseFound } from "./database-check.ts";
import { serverEnvironment } from "./settings/environment.ts";

/** Undefined if the server has none. `database`: the address of its PostgreSQL. */
export async function checkState(
  dataDir: string,
  database: string | undefined,
  address: string | undefined,
): Promise<DatabaseFound | undefined> {
  if (address === undefined) return undefined;
  if (database === undefined)
    return {
      detail: `${address} without a database`,
      cure: "give QUERN_DATABASE too: --state needs PostgreSQL",
    };
  const log = processLog();
  try {
    // A database without tables has no state yet: its first start makes both.
    await readPostgres(database, (statements) =>
      openState({
        address,
        dataDir,
        db: statements as Database,
        env: serverEnvironment,
        log,
        confirmOwner: async () => {},
      }),
    );
    return { detail: address };
  } catch (error) {
    const [detail, ...cure] = (error as Error).message.split(/(?<=[.;]) /);
    return { detail: detail!, cure: cure.join(" ") || "start it, or correct QUERN_STATE" };
  }
}
