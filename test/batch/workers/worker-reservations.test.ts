/** How much of the machine's account the waiting workers of many jobs take. */
import { expect, it } from "vitest";
import { WorkerReservations } from "../../../src/batch/workers/worker-reservations.ts";
import { COMPUTE_ASKS_MANY } from "../../../src/contracts/limits/jobs.ts";
import { ComputeAccount } from "../../../src/engine/compute-account.ts";
import type { Reservation } from "../../../src/engine/reservations.ts";
import { workersOf } from "../../../src/engine/scheduler/claims.ts";
import { withInstantRounds } from "../../harness/instant-rounds.ts";
import { MANY_FILES } from "../../harness/open-files.ts";

const CAPACITY = 1000;
const compute = { cpuMillis: 1, memoryBytes: 0, gpus: 0 };

const turn = () => new Promise((resolve) => setImmediate(resolve));

withInstantRounds();

it("the compute of a worker that died goes to whoever is owed it, and else to the next worker of its job", async () => {
  const account = new ComputeAccount({ cpuMillis: 2, memoryBytes: 1, gpus: [] });
  const given: Record<"crashing" | "other", Reservation[]> = { crashing: [], other: [] };
  const jobOf = (api: "crashing" | "other") => {
    const events = {
      reserved: (reservation: Reservation) => given[api].push(reservation),
      fault: (error: Error) => expect.unreachable(error.message),
    };
    return new WorkerReservations(
      { account, openFiles: MANY_FILES, compute, by: workersOf(api, api, 0) },
      events,
    );
  };
  const dies = async () => {
    crashing.keep(given.crashing.shift()!);
    crashing.keepAt(2);
    await turn();
  };
  const crashing = jobOf("crashing");
  crashing.keepAt(2);
  await turn();
  await dies();
  expect(given.crashing).toHaveLength(2);

  const other = jobOf("other");
  other.keepAt(1);
  await turn();
  expect(given.other).toHaveLength(0);
  await dies();
  expect(given.other).toHaveLength(1);
  expect([given.crashing.length, crashing.missing]).toEqual([1, 1]);
});

it("jobs ask for one worker after the other while very many asks wait, and get all of them in the end", async () => {
  const account = new ComputeAccount({ cpuMillis: CAPACITY, memoryBytes: 1, gpus: [] });
  const all = account.occupy({ ...compute, cpuMillis: CAPACITY })!;
  const given: Reservation[] = [];
  const events = {
    reserved: (reservation: Reservation) => given.push(reservation),
    fault: (error: Error) => expect.unreachable(error.message),
  };
  const jobs = Array.from({ length: 100 }, (_, n) => {
    const job = new WorkerReservations(
      { account, openFiles: MANY_FILES, compute, by: workersOf(`${n}`, "a", 0) },
      events,
    );
    job.keepAt(CAPACITY);
    return job;
  });
  expect(account.waitingCount).toBeLessThanOrEqual(COMPUTE_ASKS_MANY + CAPACITY + jobs.length);
  const last = jobs.at(-1)!;
  expect(last.missing).toBe(CAPACITY);
  for (const job of jobs.slice(0, -1)) job.stop();
  account.giveBack(all);
  for (let turns = 0; turns < 2 * CAPACITY && last.missing > 0; turns++)
    await new Promise((resolve) => setImmediate(resolve));
  expect([last.missing, given.length]).toEqual([0, CAPACITY]);
});
