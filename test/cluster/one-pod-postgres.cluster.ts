/** The same pod with PostgreSQL as its database, which a Secret names. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { Postgres, psql } from "../harness/postgres.ts";
import { ADDRESS, apply } from "./kubectl.ts";
import { Pod } from "./pod.ts";
import { deploySquares, expectExact, jobInTheMiddle } from "./squares.ts";

const pod = new Pod("ml-postgres");
let postgres: Postgres;
beforeAll(async () => {
  postgres = await Postgres.start(`-c listen_addresses=127.0.0.1,${ADDRESS}`);
  postgres.admit("10.0.0.0/8");
  pod.prepare();
  const url = postgres.url.replace("127.0.0.1", ADDRESS);
  const metadata = { name: "database", namespace: pod.namespace };
  apply({ apiVersion: "v1", kind: "Secret", metadata, stringData: { url } });
  await pod.start(["--database-secret", "database"]);
  deploySquares(pod);
}, 300_000);
afterAll(async () => {
  await pod.end();
  postgres.stop();
});

it("finishes a job exactly after PostgreSQL crashed and the pod was deleted", async () => {
  const id = await jobInTheMiddle(pod);
  postgres.kill();
  postgres.begin();
  await pod.jobIs("squares", id, "goes on", ({ batch_metrics }) => batch_metrics.succeeded > 100);
  await pod.replace("--grace-period=0", "--force");
  await expectExact(pod, id);
  expect(psql(postgres.url, `SELECT succeeded FROM jobs WHERE job_id = '${id}'`)).toBe("500");
});
