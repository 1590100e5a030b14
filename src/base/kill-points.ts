/**
 * Numbered places where a test kills the process with SIGKILL (docs/decisions/0004-commit-order.md).
 * In production no point is armed and `reach` does nothing.
 */
export const KILL_POINTS = [
  "submission-before-commit",
  "submission-after-commit",
  "segment-before-commit",
  "segment-after-commit",
  "enqueued-after-commit",
  "rows-after-sync",
  "ack-before-commit",
  "ack-after-commit",
  "part-before-commit",
  "part-after-commit",
  "closing-before-commit",
  "closing-after-commit",
  "manifest-before-put",
  "manifest-after-put",
  "terminal-before-commit",
  "terminal-after-commit",
] as const;
/** Those of a redrive of messages: a job runs through none of them. */
export const REDRIVE_KILL_POINTS = ["redrive-put-back", "redrive-begun"] as const;
type KillPoint = (typeof KILL_POINTS)[number] | (typeof REDRIVE_KILL_POINTS)[number];

export type ReachKillPoint = (point: KillPoint) => void;

/** `armed` is `<point>` or `<point>:<n>`: the n-th time (from 1) that the point is reached. */
export function armKillPoint(armed: string | undefined): ReachKillPoint {
  if (armed === undefined || armed === "") return () => {};
  const [name, count = "1"] = armed.split(":");
  let left = Number(count);
  return (point) => {
    if (point === name && --left === 0) process.kill(process.pid, "SIGKILL");
  };
}
