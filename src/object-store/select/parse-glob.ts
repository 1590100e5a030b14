/**
 * Parses a glob pattern (docs/contract/submitting.md#globs) into the steps of an automaton:
 * - `*` is any run without `/`, `**` any run, `?` one character except `/`
 * - `[abc]`, `[a-z]`, `[!a]` are one character of a set, never `/`
 * - `{a,b}` is either pattern
 * - `\` takes the next character literally
 */
import { GLOB_LENGTH_MAX } from "../../contracts/limits/submissions.ts";

/** What a step matches: one character by its code, a set, or all but `/` (`**` also that). */
type Wanted = number | "set" | "all";

/** All that a step leads to has a lower index. A star leads to itself too, by each character that matches. */
export type GlobStep =
  | { kind: "one" | "star"; matches: (code: number) => boolean; wanted: Wanted; next: number }
  | { kind: "fork"; next: readonly number[] }
  | { kind: "end" };

export interface ParsedGlob {
  steps: readonly GlobStep[];
  /** The index of the first step. */
  start: number;
  /** From each of these codes to before the next one, no step tells characters apart. Ascending, from 0. */
  bounds: readonly number[];
}

const SLASH = 0x2f;

/** Says what is wrong with a pattern, and the cure. */
export class GlobError extends Error {}

/** Throws GlobError if `pattern` is not legal. */
export function parseGlob(pattern: string): ParsedGlob {
  const parser = new Parser(pattern);
  const start = parser.parse();
  const bounds = [...parser.bounds].sort((a, b) => a - b);
  return { steps: parser.steps, start, bounds };
}

/** Builds the steps from the end of the pattern to its beginning, so that each knows its successor. */
class Parser {
  readonly steps: GlobStep[] = [];
  readonly bounds = new Set([0, SLASH, SLASH + 1]);
  private readonly codes: string[];
  private at = 0;

  constructor(pattern: string) {
    this.codes = [...pattern];
  }

  parse(): number {
    if (this.codes.length === 0) throw new GlobError("it is empty");
    if (this.codes.length > GLOB_LENGTH_MAX)
      throw new GlobError(`it has ${this.codes.length} characters; at most ${GLOB_LENGTH_MAX} are allowed`);
    const end = this.add({ kind: "end" });
    return this.sequence(0)(end);
  }

  private add(step: GlobStep): number {
    return this.steps.push(step) - 1;
  }

  /**
   * Parses parts up to the end or, inside braces, up to `,` or `}`. Returns a function that links them to the next
   * step.
   */
  private sequence(depth: number): (next: number) => number {
    const parts: ((next: number) => number)[] = [];
    while (this.at < this.codes.length) {
      const code = this.codes[this.at]!;
      if (depth > 0 && (code === "," || code === "}")) break;
      this.at++;
      parts.push(this.part(code, depth));
    }
    return (next) => parts.reduceRight((behind, part) => part(behind), next);
  }

  private part(code: string, depth: number): (next: number) => number {
    switch (code) {
      case "*":
        return this.star();
      case "?":
        return this.one("all", (given) => given !== SLASH);
      case "[":
        return this.set();
      case "{":
        return this.alternatives(depth + 1);
      case "\\":
        if (this.at === this.codes.length)
          throw new GlobError("it ends in \\; write \\\\ for a backslash itself");
        return this.literal(this.codes[this.at++]!);
      default:
        return this.literal(code);
    }
  }

  private one(wanted: Wanted, matches: (code: number) => boolean): (next: number) => number {
    return (next) => this.add({ kind: "one", matches, wanted, next });
  }

  private literal(character: string): (next: number) => number {
    const wanted = character.codePointAt(0)!;
    this.bounds.add(wanted).add(wanted + 1);
    return this.one(wanted, (given) => given === wanted);
  }

  private star(): (next: number) => number {
    let stars = 1;
    for (; this.codes[this.at] === "*"; this.at++) stars++;
    const matches = stars > 1 ? () => true : (given: number) => given !== SLASH;
    return (next) => this.add({ kind: "star", matches, wanted: "all", next });
  }

  private set(): (next: number) => number {
    const close = this.codes.indexOf("]", this.at);
    if (close < 0) throw new GlobError('"[" is never closed; write \\[ for the character itself');
    const isNegated = this.codes[this.at] === "!";
    if (isNegated) this.at++;
    if (this.at === close)
      throw new GlobError('"[]" holds no character; write \\[\\] for the characters themselves');
    const ranges: [number, number][] = [];
    while (this.at < close) ranges.push(this.range(close));
    this.at = close + 1;
    for (const [from, to] of ranges) this.bounds.add(from).add(to + 1);
    const holds = (given: number) => ranges.some(([from, to]) => given >= from && given <= to);
    return this.one("set", (given) => given !== SLASH && holds(given) !== isNegated);
  }

  private range(close: number): [number, number] {
    const from = this.codes[this.at++]!;
    if (this.codes[this.at] !== "-" || this.at + 1 >= close)
      return [from.codePointAt(0)!, from.codePointAt(0)!];
    const to = this.codes[this.at + 1]!;
    this.at += 2;
    if (to.codePointAt(0)! < from.codePointAt(0)!)
      throw new GlobError(`"${from}-${to}" runs backwards; write ${to}-${from}`);
    return [from.codePointAt(0)!, to.codePointAt(0)!];
  }

  private alternatives(depth: number): (next: number) => number {
    const choices: ((next: number) => number)[] = [];
    for (;;) {
      choices.push(this.sequence(depth));
      const code = this.codes[this.at++];
      if (code === undefined) throw new GlobError('"{" is never closed; write \\{ for the character itself');
      if (code === "}")
        return (next) => this.add({ kind: "fork", next: choices.map((choice) => choice(next)) });
    }
  }
}
