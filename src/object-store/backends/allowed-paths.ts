/**
 * Which real paths may be read by `file://`: those under the roots that the operator allows, except the server's data
 * directory.
 */
import { realpath } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { ServiceError } from "../../contracts/errors.ts";
import { isInside, realOrSelf } from "./real-path.ts";

export class AllowedPaths {
  private readonly roots: readonly string[];
  private readonly closed: string;

  /** Real paths of absolute directories; `closed` may not be read. */
  constructor(roots: readonly string[], closed: string) {
    this.roots = roots;
    this.closed = closed;
  }

  isRoot(real: string): boolean {
    return this.roots.includes(real);
  }

  has(real: string): boolean {
    return !isInside(real, this.closed) && this.roots.some((root) => isInside(real, root));
  }

  /** Throws `path_not_allowed`, about the path as it was given, also if the real path cannot be determined. */
  assertHas(real: string | undefined, given: string): void {
    if (real !== undefined && isInside(real, this.closed)) throw inDataDirectory(given);
    if (real === undefined || !this.has(real)) throw outside(given, this.roots);
  }

  /** The closed directory as a walk from `directory` reaches it, which follows no links; undefined if it does not. */
  closedFrom(directory: string, real: string): string | undefined {
    return isInside(this.closed, real) ? resolve(directory, relative(real, this.closed)) : undefined;
  }
}

/**
 * Real paths of the operator's roots. Throws if one is missing or in the data directory; one that contains it is fine.
 */
export async function resolveRoots(roots: readonly string[], dataDir: string): Promise<string[]> {
  const resolved: string[] = [];
  const closed = await realOrSelf(resolve(dataDir));
  for (const root of roots) {
    const real = await realpath(resolve(root.replace(/:ro$/, ""))).catch(() => {
      throw new Error(`--allow-local-root ${root}: there is no such directory`);
    });
    if (isInside(real, closed)) {
      throw new Error(
        `--allow-local-root ${root}: it is in the data directory ${dataDir}, which jobs may never read; name a directory outside it`,
      );
    }
    resolved.push(real);
  }
  return resolved;
}

function inDataDirectory(given: string): ServiceError {
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is in the server's data directory, which jobs may not read by file://; put the file elsewhere`,
  );
}

function outside(given: string, roots: readonly string[]): ServiceError {
  const allowed = roots.length === 0 ? "no local root is allowed" : `allowed roots: ${roots.join(", ")}`;
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is not under a directory that this server may read (${allowed}); start it with --allow-local-root DIR`,
  );
}
