/** Fuzzes one target for a while: mutates known inputs, keeps those that reach new code, ends at the first finding. */
import { seeded } from "../harness/random.ts";
import type { Answer } from "./channel.ts";
import { Corpus, seedsOf } from "./corpus.ts";
import { Executor } from "./executor.ts";
import { Mutator } from "./mutator.ts";
import { TARGETS } from "./targets.ts";

const LOOK_EVERY = 100;
const SHORTER_MS = 10_000;

export interface FoundInput {
  input: Buffer;
  what: string;
}

export interface Summary {
  inputs: number;
  kept: number;
  found: FoundInput | undefined;
}

export async function fuzzTarget(name: string, seed: number, ms: number): Promise<Summary> {
  const random = seeded(seed);
  const { dictionary, maxBytes } = TARGETS[name]!;
  const mutator = new Mutator(random, dictionary, maxBytes);
  const sides = new Sides(name);
  const seeds = seedsOf(name).map(({ input }) => input);
  const corpus = new Corpus(seeds, random);
  let inputs = 0;
  /** Runs them, and keeps those that reach new code. Returns the first finding. */
  const take = async (given: readonly Buffer[]): Promise<FoundInput | undefined> => {
    const unknown: Buffer[] = [];
    inputs += given.length;
    const answers = await sides.runAll(given);
    for (const [i, { finding, fresh }] of answers.entries()) {
      const input = given[i]!;
      if (finding !== undefined) return { input, what: finding };
      if (fresh === undefined) unknown.push(input);
      else if (fresh) corpus.add(input);
    }
    if (unknown.length > 0 && (await sides.look(false))) await keepFresh(unknown);
    return undefined;
  };
  /** Finds those that reach new code by bisection, because a coverage check takes as long as many inputs. */
  const keepFresh = async (given: readonly Buffer[]): Promise<void> => {
    await sides.runAll(given);
    if (!(await sides.look(given.length === 1))) return;
    if (given.length === 1) return corpus.add(given[0]!);
    const middle = given.length >> 1;
    await keepFresh(given.slice(0, middle));
    await keepFresh(given.slice(middle));
  };
  try {
    let found = await take(seeds);
    const endMs = performance.now() + ms;
    while (found === undefined && performance.now() < endMs)
      found = await take(
        Array.from({ length: LOOK_EVERY }, () => mutator.mutate(corpus.pick(), corpus.pick())),
      );
    return {
      inputs,
      kept: corpus.size - seeds.length,
      found: found && (await shorter(sides, found, random)),
    };
  } finally {
    await sides.stop();
  }
}

/** Runs these inputs only. */
export async function replay(name: string, inputs: readonly Buffer[]): Promise<FoundInput | undefined> {
  const sides = new Sides(name);
  try {
    const answers = await sides.runAll(inputs);
    const at = answers.findIndex(({ finding }) => finding !== undefined);
    return at < 0 ? undefined : { input: inputs[at]!, what: answers[at]!.finding! };
  } finally {
    await sides.stop();
  }
}

/** Leaves out pieces as long as the finding stays. One that ended the process is left as it is. */
async function shorter(sides: Sides, found: FoundInput, random: () => number): Promise<FoundInput> {
  const untilMs = performance.now() + SHORTER_MS;
  let best = found;
  for (let size = found.input.length >> 1; size > 0 && performance.now() < untilMs && sides.isAlive; ) {
    const at = Math.floor(random() * (best.input.length - size + 1));
    const input = Buffer.concat([best.input.subarray(0, at), best.input.subarray(at + size)]);
    const { finding } = await sides.run(input);
    if (finding !== undefined && isSame(finding, best.what)) best = { input, what: finding };
    else if (random() < 0.1) size >>= 1;
    size = Math.min(size, best.input.length);
  }
  return best;
}

function isSame(one: string, other: string): boolean {
  const kind = (text: string) => text.split("\n")[0]!.slice(0, 40).replace(/\d+/g, "0");
  return kind(one) === kind(other);
}

/** The process that runs a target, and the Python one that must agree with what it claims, where it claims something. */
class Sides {
  isAlive = true;
  private readonly name: string;
  private readonly executor: Executor;
  private other: Executor | undefined;

  constructor(name: string) {
    this.name = name;
    this.executor = "run" in TARGETS[name]! ? Executor.node(name) : Executor.python("targets", name);
  }

  /** All are under way at once, and run one after the other. */
  runAll(inputs: readonly Buffer[]): Promise<Answer[]> {
    return Promise.all(inputs.map((input) => this.run(input)));
  }

  async run(input: Buffer): Promise<Answer> {
    const answer = await this.executor.run(input);
    if (answer.finding !== undefined || answer.claim === undefined) return this.noted(answer);
    this.other ??= Executor.python("agreements", this.name);
    const { finding } = await this.other.run(Buffer.from(JSON.stringify(answer.claim)));
    return this.noted(
      finding === undefined ? answer : { ...answer, finding: `Python does not agree: ${finding}` },
    );
  }

  look(keep: boolean): Promise<boolean> {
    return this.executor.look(keep);
  }

  async stop(): Promise<void> {
    await Promise.all([this.executor.stop(), this.other?.stop()]);
  }

  private noted(answer: Answer): Answer {
    if (
      answer.finding !== undefined &&
      /^(the process ended|the process has grown|no answer)/.test(answer.finding)
    )
      this.isAlive = false;
    return answer;
  }
}
