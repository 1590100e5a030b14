/** Describes a fuzzed part of Quern: how to run it on bytes, and which inputs are worth trying. */

export interface Target {
  /** Words that inputs are made of, beside arbitrary bytes. */
  readonly dictionary: readonly string[];
  readonly maxBytes: number;
  /** Inputs beside the files in `seeds/NAME`. */
  readonly seeds?: () => readonly Buffer[];
  /** Scripts whose reached code makes an input worth keeping; none for a target that tells its features by itself. */
  readonly covers?: RegExp;
  /** Before the first input: servers and files. Returns what ends them. */
  readonly setUp?: () => Promise<() => Promise<void>>;
  /**
   * Runs one input, in a process of its own. Throws (Finding, or any error) for a failure. Its result may hold a claim
   * that the Python side must agree with, and features: what kind of input it was.
   */
  readonly run: (input: Buffer) => Ran | undefined | Promise<Ran | undefined>;
}

/** The same in Python: test/fuzz/python/execute.py has the function of this target's name. */
export type PythonTarget = Omit<Target, "run" | "setUp" | "covers">;

export interface Ran {
  /** JSON for the function of the target's name in test/fuzz/python/agreements.py. */
  claim?: unknown;
  features?: readonly string[];
}

/** A rule is broken. */
export class Finding extends Error {}

export function mustHold(holds: boolean, what: string): void {
  if (!holds) throw new Finding(what);
}

/** Whether two JSON values are the same, and where they differ if not. */
export function mustEqual(one: unknown, other: unknown, what: string): void {
  const [left, right] = [JSON.stringify(one), JSON.stringify(other)];
  if (left !== right) throw new Finding(`${what}: ${cut(left)} and ${cut(right)}`);
}

function cut(text: string | undefined): string {
  return text === undefined || text.length < 400 ? String(text) : `${text.slice(0, 400)}…`;
}
