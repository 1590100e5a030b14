/**
 * `npm run chaos -- --minutes N [--seed S] [--long-stops]`: kills and stops the processes of a real server at random
 * moments while jobs and real-time clients run, and checks what ARCHITECTURE.md promises. Ends with a line like the
 * tests do. If anything was violated, the server's directory is kept.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { processes } from "../harness/processes.ts";
import { seeded } from "../harness/random.ts";
import { TestServer } from "../harness/server.ts";
import { startS3 } from "../harness/stores.ts";
import { Attacker } from "./attacker.ts";
import { Jobs } from "./jobs.ts";
import { Load } from "./load.ts";
import { OutputPlaces } from "./output-places.ts";
import { chaosProject } from "./predictors.ts";
import { StoreAttacker } from "./store-attacker.ts";
import { Violations } from "./violations.ts";

const ARGS = ["--gateways", "2"];

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    "long-stops": { type: "boolean", default: false },
  },
});
const seed = Number(values.seed);
const minutes = Number(values.minutes);
console.log(`${minutes} minutes, seed ${seed}; again: npm run chaos -- --minutes ${minutes} --seed ${seed}`);

const violations = new Violations();
const bucket = await startS3();
const server = new TestServer(bucket.env);
const record = join(server.dir, "asked");
await server.start({}, ARGS);
server.deploy(chaosProject(record));

const jobs = new Jobs({ server, violations, places: new OutputPlaces(server, bucket) }, seeded(seed));
const load = new Load({ server, random: seeded(seed + 1), violations, record });
const attacker = new Attacker({
  server,
  random: seeded(seed + 2),
  violations,
  args: ARGS,
  longStops: values["long-stops"],
  mayDie: (pid) => jobs.mayDie(pid),
});
const storeAttacker = new StoreAttacker(bucket, seeded(seed + 3));
load.start();
jobs.start(attacker);
attacker.start();
storeAttacker.start();
await pause(minutes * 60_000);
await attacker.stop();
await storeAttacker.stop();
await jobs.stop();
await load.stop();
load.check();
const unfinished = await bucket.unfinished();
if (unfinished.length > 0) violations.add(`uploads that never end: ${unfinished}`);
await server.stopProcesses().catch((error: Error) => violations.add(error.message));
const left = processes().filter(({ command }) => command.includes(server.dir));
if (left.length > 0) violations.add(`left behind: ${left.map(({ pid, command }) => `${pid} ${command}`)}`);

const answers = [...load.statuses].sort().map(([status, count]) => `${count} × ${status || "cut off"}`);
console.log(`attacks: ${attacker.summary()}`);
console.log(`attacks on the bucket: ${storeAttacker.summary()}`);
console.log(`predictions: ${answers.join(", ")}`);
console.log(
  `jobs: ${jobs.checked} with ${jobs.batches} batches; ${jobs.runAgain} ran again; ${jobs.outputs} outputs read`,
);
const failed = violations.found.length;
await bucket.stop();
if (failed === 0) await server.stop();
else
  console.log(
    `seed ${seed}; what it left is in ${server.dir}\n${violations.found.map((one) => `FAILED ${one}`).join("\n")}`,
  );
console.log(`\n${failed === 0 ? 1 : 0} passed, ${failed} failed, 0 skipped`);
process.exit(failed === 0 ? 0 : 1);
