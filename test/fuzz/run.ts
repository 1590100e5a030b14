/**
 * `npm run fuzz -- --seconds N [--seed S] [--target NAME,NAME...] [--replay FILE]`: gives each target its share of the time, after
 * its seeds; 0 seconds are the seeds alone. Ends with a line like the tests do; a finding says which input it was, and how to run
 * it again.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../harness/server.ts";
import { type FoundInput, fuzzTarget, replay } from "./fuzz-target.ts";
import { PLANTED, TARGETS } from "./targets.ts";

const FINDINGS = join(root, ".bench", "fuzz");
const SHOWN_BYTES_MAX = 300;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    target: { type: "string" },
    replay: { type: "string" },
  },
});
const seed = Number(values.seed);
const known = Object.keys(TARGETS).filter((name) => !PLANTED.includes(name));
const names = values.target?.split(",") ?? known;
const unknown = names.find((name) => TARGETS[name] === undefined);
if (unknown !== undefined) {
  console.error(`there is no target ${unknown}; there are ${known.join(", ")}`);
  process.exit(2);
}
if (values.replay !== undefined) await replayFile(values.target, values.replay);
else await fuzz();

async function replayFile(target: string | undefined, file: string): Promise<void> {
  if (target === undefined) {
    console.error("--replay needs --target, the name of the target that the input is for");
    process.exit(2);
  }
  const found = await replay(target, [readFileSync(file)]);
  console.log(found === undefined ? "nothing is wrong with this input" : found.what);
  process.exit(found === undefined ? 0 : 1);
}

/** One for each core at a time; waiting targets take the next free core. */
async function fuzz(): Promise<void> {
  const lanes = Math.max(1, Math.min(names.length, availableParallelism()));
  const ms = (Number(values.seconds) * 1000 * lanes) / names.length;
  console.log(`${values.seconds} s, seed ${seed}, ${names.length} targets, ${lanes} at a time`);
  const waiting = [...names];
  const failed: string[] = [];
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const { inputs, kept, found } = await fuzzTarget(name, seed, ms);
      console.log(`${name}: ${inputs} inputs, ${kept} kept${found === undefined ? "" : ", and a FINDING"}`);
      if (found === undefined) continue;
      failed.push(name);
      report(name, found);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  console.log(`${names.length - failed.length} passed, ${failed.length} failed, 0 skipped`);
  process.exit(failed.length === 0 ? 0 : 1);
}

function report(name: string, { input, what }: FoundInput): void {
  const id = createHash("sha256").update(input).digest("hex").slice(0, 12);
  const file = join(FINDINGS, `${name}-${id}`);
  mkdirSync(FINDINGS, { recursive: true });
  writeFileSync(file, input);
  const path = relative(root, file);
  const bytes = input.length > SHOWN_BYTES_MAX ? "" : `\n  in base64: ${input.toString("base64")}`;
  console.log(`FAILED ${name} (seed ${seed}): ${what}
  input of ${input.length} bytes: ${path}${bytes}
  again: npm run fuzz -- --target ${name} --replay ${path}
  once it is fixed, keep it: cp ${path} test/fuzz/seeds/${name}/WHAT-IT-SHOWS`);
}
