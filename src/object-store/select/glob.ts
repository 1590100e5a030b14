/**
 * Matches glob patterns of the contract (docs/contract/submitting.md#globs). They match a whole path, anchored and
 * case-sensitive, with `/` as the separator.
 *
 * A pattern becomes a small nondeterministic automaton that is walked with a set of states (Thompson, 1968). Each set
 * is kept with its successors. So time is bounded by pattern × path for every pattern, and usually by the path alone. A
 * path that keeps making new sets is walked without keeping them, which is faster then. Regular expressions of
 * JavaScript backtrack, and a pattern comes from outside.
 */

import { GLOB_STATES_KEPT } from "../../contracts/limits/input-files.ts";
import { type GlobStep, type ParsedGlob, parseGlob } from "./parse-glob.ts";

const ASCII = 128;
/** A path may make this many new states before it is walked without keeping any. */
const NEW_STATES_MAX = 64;

export interface Glob {
  matches(path: string): boolean;
}

/** Throws GlobError, with the cure, if `pattern` is not legal. `statesKept`: the most states kept, a kilobyte each. */
export function compileGlob(pattern: string, statesKept = GLOB_STATES_KEPT): Glob {
  return new Automaton(parseGlob(pattern), statesKept);
}

/** A set of steps that a path may have led to, with the next sets as far as they were needed. */
interface State {
  steps: readonly number[];
  isEnd: boolean;
  /** By ASCII code. */
  next: (State | undefined)[];
}

class Automaton implements Glob {
  private readonly steps: readonly GlobStep[];
  /** All states that are kept are reached from here. */
  private start: State;
  private readonly states = new Map<string, State>();
  private readonly statesKept: number;
  /** The last walk that reached each step. */
  private readonly reached: Uint32Array;
  private walk = 0;

  constructor({ steps, start }: ParsedGlob, statesKept: number) {
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

  /** Lets go of all states: the start would still reach those that are no longer found by their steps. */
  private forget(): void {
    this.states.clear();
    this.start = { ...this.start, next: new Array<State | undefined>(ASCII) };
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
    if (this.states.size >= this.statesKept) this.forget();
    const isEnd = steps.some((index) => this.steps[index]!.kind === "end");
    const state: State = { steps, isEnd, next: new Array<State | undefined>(ASCII) };
    this.states.set(key, state);
    return state;
  }
}
