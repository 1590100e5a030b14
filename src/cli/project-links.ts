/**
 * Links in a project. What they lead to goes along as if it were in their place, but from inside of the project only: a project that somebody
 * else wrote must not take the files of whoever deploys it.
 */
import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { CliError, EXIT } from "./context.ts";

/** A directory of the project that is walked into, with the real directories above it. */
export interface Walked {
  /** Of the project; empty for itself. */
  path: string;
  real: string;
  above: readonly string[];
}

/** What the link leads to; undefined where nothing is there. Throws where it leads out of the project, or in a circle. */
export async function behindLink(
  root: string,
  link: string,
  { real: from, above }: Walked,
): Promise<{ info: Stats; real: string } | undefined> {
  const real = await realpath(join(root, link)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    if (error.code === "ELOOP") throw circle(link);
    throw error;
  });
  if (real === undefined) return undefined;
  if (real !== root && !real.startsWith(`${root}${sep}`)) {
    const cure = "copy what the project needs into it, or list the link in .quernignore";
    throw new CliError(`${link} is a link to ${real}, outside of the project; ${cure}`, EXIT.failed);
  }
  if (real === from || above.includes(real)) throw circle(link);
  return { info: await stat(real), real };
}

function circle(link: string): CliError {
  return new CliError(
    `${link} is a link that leads in a circle; remove it, or list it in .quernignore`,
    EXIT.failed,
  );
}
