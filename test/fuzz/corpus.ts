/** The inputs that a target began with, `test/fuzz/seeds/TARGET/*`, and those that reached something new. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../harness/server.ts";
import { TARGETS } from "./targets.ts";

/** More do not help in a run of minutes, because the shortest known inputs are mutated most. */
const INPUTS_MAX = 4_000;

export interface Seed {
  name: string;
  input: Buffer;
}

export function seedsOf(target: string): Seed[] {
  const directory = join(root, "test", "fuzz", "seeds", target);
  const names = existsSync(directory) ? readdirSync(directory).sort() : [];
  const made = TARGETS[target]!.seeds?.() ?? [];
  return [
    ...names.map((name) => ({ name, input: readFileSync(join(directory, name)) })),
    ...made.map((input, i) => ({ name: `made ${i}`, input })),
  ];
}

export class Corpus {
  private readonly inputs: Buffer[];
  private readonly random: () => number;

  constructor(inputs: readonly Buffer[], random: () => number) {
    this.inputs = inputs.length === 0 ? [Buffer.alloc(0)] : [...inputs];
    this.random = random;
  }

  get size(): number {
    return this.inputs.length;
  }

  add(input: Buffer): void {
    if (this.inputs.length === INPUTS_MAX) this.inputs.splice(Math.floor(this.random() * INPUTS_MAX), 1);
    this.inputs.push(input);
  }

  /** The later ones, which reached something new, more often. */
  pick(): Buffer {
    const where = this.random() < 0.5 ? this.random() : Math.sqrt(this.random());
    return this.inputs[Math.floor(where * this.inputs.length)]!;
  }
}
