/** Which steps of a pattern match a character: one bit for each step, 32 of them in a word. */
import type { GlobStep, ParsedGlob } from "./parse-glob.ts";

const ASCII = 128;
const SLASH = 0x2f;
/** Masks of other characters that are kept, at most 132 bytes each. */
const MASKS_KEPT = 256;

export class StepMasks {
  private readonly glob: ParsedGlob;
  /** Steps that match every character but `/`, whatever it is. */
  private readonly ofAll: Int32Array;
  /** Those of them that match `/` too. */
  private readonly ofSlash: Int32Array;
  private readonly literals = new Map<number, number[]>();
  private readonly sets: number[] = [];
  private readonly ofAscii: (Int32Array | undefined)[] = new Array(ASCII);
  private readonly ofClass = new Map<number, Int32Array>();

  constructor(glob: ParsedGlob) {
    this.glob = glob;
    const matching = (code: number) =>
      bitsOf(glob.steps, (step) => "wanted" in step && step.wanted === "all" && step.matches(code));
    this.ofAll = matching(SLASH + 1);
    this.ofSlash = matching(SLASH);
    for (const [index, step] of glob.steps.entries()) {
      if (!("wanted" in step) || step.wanted === "all") continue;
      if (step.wanted === "set") this.sets.push(index);
      else this.indicesOf(step.wanted).push(index);
    }
  }

  /** The steps that match a character. */
  of(code: number): Int32Array {
    if (code < ASCII) {
      this.ofAscii[code] ??= this.matching(code);
      return this.ofAscii[code];
    }
    const first = this.classOf(code);
    const known = this.ofClass.get(first);
    if (known !== undefined) return known;
    const masks = this.matching(first);
    if (this.ofClass.size >= MASKS_KEPT) this.ofClass.clear();
    this.ofClass.set(first, masks);
    return masks;
  }

  /** The first of the characters around this one that no step tells apart. */
  private classOf(code: number): number {
    const { bounds } = this.glob;
    let [from, to] = [0, bounds.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (bounds[middle]! <= code) from = middle + 1;
      else to = middle;
    }
    return bounds[from - 1]!;
  }

  private matching(code: number): Int32Array {
    const masks = (code === SLASH ? this.ofSlash : this.ofAll).slice();
    for (const index of this.literals.get(code) ?? []) masks[index >>> 5]! |= 1 << index;
    for (const index of this.sets) {
      const step = this.glob.steps[index]!;
      if ("matches" in step && step.matches(code)) masks[index >>> 5]! |= 1 << index;
    }
    return masks;
  }

  private indicesOf(literal: number): number[] {
    const known = this.literals.get(literal) ?? [];
    this.literals.set(literal, known);
    return known;
  }
}

export function wordsOf(steps: readonly GlobStep[]): number {
  return Math.ceil(steps.length / 32);
}

/** The steps that are in, as bits. */
export function bitsOf(
  steps: readonly GlobStep[],
  isIn: (step: GlobStep, index: number) => boolean,
): Int32Array {
  const bits = new Int32Array(wordsOf(steps));
  for (const [index, step] of steps.entries()) if (isIn(step, index)) bits[index >>> 5]! |= 1 << index;
  return bits;
}
