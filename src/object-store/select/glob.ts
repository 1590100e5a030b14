/**
 * Glob patterns of the contract (docs/contract/submitting.md#globs). They match a whole path, anchored and
 * case-sensitive, with `/` as the separator:
 * - `*` is any run without `/`, `**` any run, `?` one character except `/`
 * - `[abc]`, `[a-z]`, `[!a]` are one character of a set, never `/`
 * - `{a,b}` is either pattern
 * - `\` takes the next character literally
 *
 * A pattern becomes a small nondeterministic automaton that is walked with a set of states (Thompson, 1968). Each set
 * is kept with its successors. So time is bounded by pattern × path for every pattern, and usually by the path alone. A
 * path that keeps making new sets is walked without keeping them, which is faster then. Regular expressions of
 * JavaScript backtrack, and a pattern comes from outside.
 */

import { GLOB_LENGTH_MAX, GLOB_STATES_KEPT } from "../../contracts/limits.ts";

type Step =
  | { kind: "one"; matches: (code: number) => boolean; next: number }
  | { kind: "fork"; next: number[] }
  | { kind: "end" };

const SLASH = 0x2f;
const ASCII = 128;
/** A path may make this many new states before it is walked without keeping any. */
const NEW_STATES_MAX = 64;

export class GlobError extends Error {}

export interface Glob {
  matches(path: string): boolean;
}

/** Throws GlobError, with the cure, if `pattern` is not legal. `statesKept`: the most states kept, a kilobyte each. */
export function compileGlob(pattern: string, statesKept = GLOB_STATES_KEPT): Glob {
  const parser = new Parser(pattern);
  const start = parser.parse();
  return new Automaton(parser.steps, start, statesKept);
}

/** Builds the steps from the end of the pattern to its beginning, so that each knows its successor. */
class Parser {
  readonly steps: Step[] = [];
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

  private add(step: Step): number {
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
        return this.one((given) => given !== SLASH);
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

  private one(matches: (code: number) => boolean): (next: number) => number {
    return (next) => this.add({ kind: "one", matches, next });
  }

  private literal(character: string): (next: number) => number {
    const wanted = character.codePointAt(0)!;
    return this.one((given) => given === wanted);
  }

  private star(): (next: number) => number {
    let stars = 1;
    for (; this.codes[this.at] === "*"; this.at++) stars++;
    const matches = stars > 1 ? () => true : (given: number) => given !== SLASH;
    return (next) => {
      const fork = { kind: "fork" as const, next: [next] };
      const loop = this.add(fork);
      fork.next.push(this.add({ kind: "one", matches, next: loop }));
      return loop;
    };
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
    const holds = (given: number) => ranges.some(([from, to]) => given >= from && given <= to);
    return this.one((given) => given !== SLASH && holds(given) !== isNegated);
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

/** A set of steps that a path may have led to, with the next sets as far as they were needed. */
interface State {
  steps: readonly number[];
  isEnd: boolean;
  /** By ASCII code. */
  next: (State | undefined)[];
}

class Automaton implements Glob {
  private readonly steps: readonly Step[];
  private readonly start: State;
  private readonly states = new Map<string, State>();
  private readonly statesKept: number;
  /** The last walk that reached each step. */
  private readonly reached: Uint32Array;
  private walk = 0;

  constructor(steps: readonly Step[], start: number, statesKept: number) {
    this.steps = steps;
    this.statesKept = statesKept;
    this.reached = new Uint32Array(steps.length);
    this.start = this.stateOf([start]);
  }

  matches(path: string): boolean {
    let state = this.start;
    let made = 0;
    for (let at = 0; at < path.length && state.steps.length > 0; at++) {
      const code = path.codePointAt(at)!;
      const known = code < ASCII ? state.next[code] : undefined;
      if (known === undefined && ++made > NEW_STATES_MAX) return this.endsWell(state.steps, path, at);
      if (code > 0xffff) at++;
      state = known ?? this.move(state, code);
    }
    return state.isEnd;
  }

  /** Walks from `steps` at `from` to the end of the path, and keeps nothing. */
  private endsWell(steps: readonly number[], path: string, from: number): boolean {
    let current: readonly number[] = steps;
    for (let at = from; at < path.length && current.length > 0; at++) {
      const code = path.codePointAt(at)!;
      if (code > 0xffff) at++;
      const next: number[] = [];
      this.walk++;
      for (const index of current) {
        const step = this.steps[index]!;
        if (step.kind === "one" && step.matches(code)) this.reach(step.next, next);
      }
      current = next;
    }
    return current.some((index) => this.steps[index]!.kind === "end");
  }

  /** Adds a step, or all steps that its forks lead to, once per walk. */
  private reach(first: number, into: number[]): void {
    const waiting = [first];
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      if (this.reached[index] === this.walk) continue;
      this.reached[index] = this.walk;
      const step = this.steps[index]!;
      if (step.kind === "fork") waiting.push(...step.next);
      else into.push(index);
    }
  }

  private move(state: State, code: number): State {
    const targets: number[] = [];
    for (const index of state.steps) {
      const step = this.steps[index]!;
      if (step.kind === "one" && step.matches(code)) targets.push(step.next);
    }
    const to = this.stateOf(targets);
    if (code < ASCII) state.next[code] = to;
    return to;
  }

  /** The state of these steps and of all that forks lead to from there. */
  private stateOf(indices: readonly number[]): State {
    const reached = new Set<number>();
    const waiting = [...indices];
    for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
      if (reached.has(index)) continue;
      reached.add(index);
      const step = this.steps[index]!;
      if (step.kind === "fork") waiting.push(...step.next);
    }
    const steps = [...reached].filter((index) => this.steps[index]!.kind !== "fork").sort((a, b) => a - b);
    const key = steps.join();
    const known = this.states.get(key);
    if (known !== undefined) return known;
    if (this.states.size >= this.statesKept) this.states.clear();
    const isEnd = steps.some((index) => this.steps[index]!.kind === "end");
    const state: State = { steps, isEnd, next: new Array<State | undefined>(ASCII) };
    this.states.set(key, state);
    return state;
  }
}
