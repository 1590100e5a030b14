/** Starts the PostgreSQL of a run with QUERN_TEST_DATABASE=postgres, once for all files (vitest.config.ts). */
import { Postgres } from "./postgres.ts";

export default async function setUp(): Promise<() => void> {
  const postgres = await Postgres.start();
  process.env.QUERN_TEST_POSTGRES = postgres.url;
  return () => postgres.stop();
}
