/** Files of a log by age: `file` is written to, `file.1` is the one before, and so on. */
import { existsSync, renameSync, rmSync } from "node:fs";

/** From the oldest file to the one that is written to. */
export function namesByAge(file: string, filesMax: number): string[] {
  return Array.from({ length: filesMax }, (_, i) => filesMax - 1 - i).map((age) =>
    age === 0 ? file : `${file}.${age}`,
  );
}

/** `file` becomes `file.1`, `file.1` becomes `file.2`, and the oldest is removed. */
export function rotate(file: string, filesMax: number): void {
  const names = namesByAge(file, filesMax);
  rmSync(names[0]!, { force: true });
  for (const [i, older] of names.slice(0, -1).entries())
    if (existsSync(names[i + 1]!)) renameSync(names[i + 1]!, older);
}
