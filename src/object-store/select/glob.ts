/**
 * Matches glob patterns of the contract (docs/contract/submitting.md#globs). They match a whole path, anchored and
 * case-sensitive, with `/` as the separator.
 *
 * A pattern becomes a small nondeterministic automaton that is walked with a set of states (Thompson, 1968). Each set
 * is kept with its successors, so time is usually bounded by the path alone. A path that keeps making new sets is walked
 * without keeping them, 32 steps at a time: one match never holds the event loop for long. Regular expressions of
 * JavaScript backtrack, and a pattern comes from outside.
 */

import { GLOB_STATES_KEPT } from "../../contracts/limits/input-files.ts";
import { type GlobStep, type ParsedGlob, parseGlob } from "./parse-glob.ts";
import { StepBits } from "./step-bits.ts";

const ASCII = 128;
/** A path may make this many new states before it is walked without keeping any. */
const NEW_STATES_MAX = 64;
/** ... or as many as have these steps together: a state of 500 steps takes up to a millisecond. */
const NEW_STEPS_MAX = 4096;

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
  private readonly glob: ParsedGlob;
  private readonly newStatesMax: number;
  /** Made for the first path that makes many states. */
  private bits: StepBits | undefined;

  constructor(glob: ParsedGlob, statesKept: number) {
    this.glob = glob;
    this.steps = glob.steps;
    this.statesKept = statesKept;
    const affordable = Math.floor(NEW_STEPS_MAX / glob.steps.length);
    this.newStatesMax = Math.min(NEW_STATES_MAX, affordable, statesKept);
    this.start = this.stateOf([glob.start]);
  }

  matches(path: string): boolean {
    let state = this.start;
    let made = 0;
    for (let at = 0; at < path.length && state.steps.length > 0; at++) {
      const code = path.codePointAt(at)!;
      const known = code < ASCII ? state.next[code] : undefined;
      if (known === undefined && ++made > this.newStatesMax) {
        this.bits ??= new StepBits(this.glob);
        return this.bits.endsWell(state.steps, path, at);
      }
      if (code > 0xffff) at++;
      state = known ?? this.move(state, code);
    }
    return state.isEnd;
  }

  private move(state: State, code: number): State {
    const targets: number[] = [];
    for (const index of state.steps) {
      const step = this.steps[index]!;
      if (step.kind === "end" || step.kind === "fork" || !step.matches(code)) continue;
      targets.push(step.kind === "star" ? index : step.next);
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
      else if (step.kind === "star") waiting.push(step.next);
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
