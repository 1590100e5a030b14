/** The same jobs on SQLite and on PostgreSQL, interleaved, from the same JSONL file. PostgreSQL runs on the same cores, and syncs each commit, as SQLite does here. */
import { Postgres } from "../test/harness/postgres.ts";
import { TestServer } from "../test/harness/server.ts";
import { runJob } from "./batch.ts";
import { median, report } from "./measure.ts";

const SIZES = [
  { batchSize: 1, bar: 0.4 },
  { batchSize: 100, bar: 0.8 },
];

export interface DatabasesBench {
  project: Record<string, string>;
  path: string;
  lines: number;
  rounds: number;
}

/** `env`: settings of both servers. */
export async function benchDatabases(bench: DatabasesBench, env: Record<string, string>): Promise<void> {
  const postgres = await Postgres.start("-c fsync=on");
  const servers = [new TestServer(env), new TestServer({ ...env, QUERN_DATABASE: postgres.url })];
  try {
    for (const server of servers) {
      await server.start();
      server.deploy(bench.project);
    }
    for (const { batchSize, bar } of SIZES) {
      const ratio = await ratioOf(servers, bench, batchSize);
      const items = batchSize === 1 ? "1 item" : `${batchSize} items`;
      report(`batch, ${items}: rate on PostgreSQL / on SQLite`, ratio, `>= ${bar}`, ratio >= bar);
    }
  } finally {
    for (const server of servers) await server.stop();
    postgres.stop();
  }
}

async function ratioOf(
  [sqlite, postgres]: TestServer[],
  { path, lines, rounds }: DatabasesBench,
  batchSize: number,
): Promise<number> {
  const ratios: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const a = await runJob(sqlite!, path, batchSize);
    const b = await runJob(postgres!, path, batchSize);
    const rate = ({ seconds }: { seconds: number }) => `${Math.round(lines / batchSize / seconds)} batches/s`;
    console.log(`  ${batchSize} a batch: SQLite ${rate(a)}, PostgreSQL ${rate(b)}`);
    ratios.push(a.seconds / b.seconds);
  }
  return median(ratios);
}
