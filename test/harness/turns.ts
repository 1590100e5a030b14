/** Turns of an event loop: how many there are, and how long they take in CPU time, which a busy machine does not change. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, type TestServer } from "./server.ts";

/** The longest turn of a server's processes: `env` for its start, and the milliseconds so far. */
export function longestTurnOf({ dir }: TestServer) {
  const file = join(dir, "longest-turn");
  const program = join(root, "test", "harness", "longest-turn.mjs");
  const env = { NODE_OPTIONS: `--import=${program}`, LONGEST_TURN: file };
  return { env, ms: () => Number(readFileSync(file, "utf8")) };
}

/** What `work` resolves to, and how many turns the event loop takes meanwhile. */
export async function countTurns<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  let isOver = false as boolean;
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  try {
    const result = await work();
    return { result, turns };
  } finally {
    isOver = true;
  }
}

/** The longest turn during the work. */
export async function longestTurnCpuMs(work: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let isOver = false as boolean;
  let before = process.cpuUsage();
  const look = () => {
    const { user, system } = process.cpuUsage(before);
    longestMs = Math.max(longestMs, (user + system) / 1000);
    before = process.cpuUsage();
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work();
  isOver = true;
  await new Promise((resolve) => setImmediate(resolve));
  return longestMs;
}

/**
 * The least of up to three measurements, and no more once one is below `bar`. A machine can be slow for a moment, and
 * garbage of other tests may be collected during one of them; code that takes too long does so each time.
 */
export async function leastOfThree(bar: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 3 && least >= bar; n++) least = Math.min(least, await measure());
  return least;
}

/** As `longestTurnCpuMs`, the least of up to three. */
export const leastLongestTurnMs = (bar: number, work: () => Promise<void>) =>
  leastOfThree(bar, () => longestTurnCpuMs(work));
