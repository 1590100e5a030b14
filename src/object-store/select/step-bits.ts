/**
 * Walks all steps of a pattern at once: one bit for each step, 32 of them in a word (bit-parallel simulation, Baeza-Yates
 * and Gonnet, 1992). For the longest pattern and path this takes milliseconds, whatever they hold.
 *
 * A step leads to one with a lower index, mostly the next lower: those move together, by a shift. Words are computed
 * from the highest to the lowest. So whatever leads into a word is known when its turn comes.
 */
import type { GlobStep, ParsedGlob } from "./parse-glob.ts";
import { bitsOf, StepMasks, wordsOf } from "./step-masks.ts";

export class StepBits {
  private readonly words: number;
  private readonly masks: StepMasks;
  private readonly stars: Int32Array;
  /** Steps of one character that lead to the next lower step. */
  private readonly near: Int32Array;
  /** Steps of one character that lead to another of the same word. */
  private readonly far: Int32Array;
  /** Stars that lead to the next lower step, which leads on only by a character. */
  private readonly nearStars: Int32Array;
  /** All other steps that lead on without a character, to steps of the same word. */
  private readonly forks: Int32Array;
  /** By step of `far` and `forks`: where it leads in its word. */
  private readonly here: Int32Array;
  /** By word: where its steps lead in lower words by a character, and where they lead without one. */
  private readonly jumps: Int32Array[];
  private readonly forkJumps: Int32Array[];
  private from: Int32Array;
  private to: Int32Array;

  constructor(glob: ParsedGlob) {
    const { steps } = glob;
    this.words = wordsOf(steps);
    this.masks = new StepMasks(glob);
    const isNear = (step: GlobStep, index: number) =>
      "next" in step && step.next === index - 1 && (step.kind === "one" || !leadsOn(steps[step.next]!));
    const isFar = (step: GlobStep, index: number) => step.kind === "one" && !isNear(step, index);
    const isFork = (step: GlobStep, index: number) => leadsOn(step) && !isNear(step, index);
    this.here = Int32Array.from(steps, (step, index) => targetsOf(step).get(index >>> 5) ?? 0);
    const leadsHere = (index: number) => this.here[index] !== 0;
    this.stars = bitsOf(steps, (step) => step.kind === "star");
    this.near = bitsOf(steps, (step, index) => step.kind === "one" && isNear(step, index));
    this.nearStars = bitsOf(steps, (step, index) => step.kind === "star" && isNear(step, index));
    this.far = bitsOf(steps, (step, index) => isFar(step, index) && leadsHere(index));
    this.forks = bitsOf(steps, (step, index) => isFork(step, index) && leadsHere(index));
    this.jumps = jumpsOf(steps, isFar);
    this.forkJumps = jumpsOf(steps, isFork);
    this.from = new Int32Array(this.words);
    this.to = new Int32Array(this.words);
  }

  /** Whether the rest of a path, from `at`, leads from any of `first` to the end of the pattern. */
  endsWell(first: readonly number[], path: string, at: number): boolean {
    this.from.fill(0);
    for (const index of first) this.from[index >>> 5]! |= 1 << index;
    let isAlive = true;
    for (let i = at; i < path.length && isAlive; i++) {
      const code = path.codePointAt(i)!;
      if (code > 0xffff) i++;
      isAlive = this.move(this.masks.of(code));
    }
    return (this.from[0]! & 1) !== 0;
  }

  /** Moves on by a character, and leaves `to` empty. Returns whether any step is left. */
  private move(mask: Int32Array): boolean {
    const { from, to, stars, near, far, nearStars, forks } = this;
    let carried = 0;
    let all = 0;
    for (let word = this.words - 1; word >= 0; word--) {
      const hit = from[word]! & mask[word]!;
      let bits = to[word]! | carried;
      from[word] = 0;
      carried = 0;
      if ((hit | bits) === 0) continue;
      const moved = hit & near[word]!;
      bits |= (hit & stars[word]!) | (moved >>> 1);
      if ((hit & far[word]!) !== 0) bits = this.follow(word, hit & far[word]!, bits, 0);
      if ((bits & forks[word]!) !== 0) bits = this.follow(word, bits & forks[word]!, bits, forks[word]!);
      const passed = bits & nearStars[word]!;
      bits |= passed >>> 1;
      carried = (moved | passed) << 31;
      jump(this.jumps[word]!, hit, to);
      jump(this.forkJumps[word]!, bits, to);
      to[word] = bits;
      all |= bits;
    }
    this.from = to;
    this.to = from;
    return all !== 0;
  }

  /** Adds to `bits` of a word where its steps `waiting` lead in it, the highest first, and where `forks` lead from there. */
  private follow(word: number, waiting: number, bits: number, forks: number): number {
    let [left, reached] = [waiting, bits];
    while (left !== 0) {
      const bit = 31 - Math.clz32(left);
      const added = this.here[(word << 5) | bit]!;
      left = (left ^ (1 << bit)) | (added & forks);
      reached |= added;
    }
    return reached;
  }
}

/** Adds to lower words where the steps `bits` lead. */
function jump(jumps: Int32Array, bits: number, to: Int32Array): void {
  for (let i = 0; i < jumps.length; i += 3) if ((bits & jumps[i]!) !== 0) to[jumps[i + 1]!]! |= jumps[i + 2]!;
}

/** Whether a step leads on without a character. */
function leadsOn(step: GlobStep): boolean {
  return step.kind === "fork" || step.kind === "star";
}

/** Bits by the index of their word. */
function targetsOf(step: GlobStep): Map<number, number> {
  const byWord = new Map<number, number>();
  if (step.kind === "end") return byWord;
  for (const next of step.kind === "fork" ? step.next : [step.next])
    byWord.set(next >>> 5, (byWord.get(next >>> 5) ?? 0) | (1 << next));
  return byWord;
}

/**
 * By word, three numbers for each place in a lower word where some of its steps lead: bits of these steps, the index of
 * the lower word, and bits of it. Hundreds of alternatives that lead to the same place are one for each word.
 */
function jumpsOf(steps: readonly GlobStep[], isIn: (step: GlobStep, index: number) => boolean): Int32Array[] {
  const places = Array.from({ length: wordsOf(steps) }, () => new Map<string, [number, number, number]>());
  for (const [index, step] of steps.entries()) {
    if (!isIn(step, index)) continue;
    const ofWord = places[index >>> 5]!;
    for (const [word, bits] of targetsOf(step)) {
      if (word === index >>> 5) continue;
      const known = ofWord.get(`${word} ${bits}`)?.[0] ?? 0;
      ofWord.set(`${word} ${bits}`, [known | (1 << index), word, bits]);
    }
  }
  return places.map((ofWord) => Int32Array.from([...ofWord.values()].flat()));
}
