/**
 * Follows links in a project. The target is packed in the link's place, but only if it is inside the project. A project
 * that somebody else wrote must not collect files of the user who deploys it.
 */
import type { Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { CliError, EXIT } from "../server/context.ts";

/** A directory of the project that is being searched, with the real paths of its parents. */
export interface Walked {
  /** Relative to the project; empty for the project itself. */
  path: string;
  real: string;
  above: readonly string[];
}

/**
 * The target of the link; undefined if it does not exist. Throws if the link leads out of the project, or in a circle.
 */
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
  return new CliError(`${link} is a circular link; remove it, or list it in .quernignore`, EXIT.failed);
}
