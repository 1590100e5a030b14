/**
 * Which real paths may be read and written by `file://`: those under the roots that the operator allows, except the
 * server's data directory.
 */
import { realpath } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { ServiceError } from "../../contracts/errors.ts";
import { isInside, realOrSelf } from "./real-path.ts";

export interface LocalRoot {
  /** The real path of an absolute directory. */
  path: string;
  isReadOnly: boolean;
}

export class AllowedPaths {
  private readonly roots: readonly LocalRoot[];
  private readonly closed: string | undefined;

  /** `closed`: the real path of a directory that is never accessed. */
  constructor(roots: readonly LocalRoot[], closed: string | undefined) {
    this.roots = roots;
    this.closed = closed;
  }

  isRoot(real: string): boolean {
    return this.roots.some((root) => root.path === real);
  }

  has(real: string): boolean {
    return !this.isClosed(real) && this.roots.some((root) => isInside(real, root.path));
  }

  /** Throws `path_not_allowed`, about the path as it was given, also if the real path cannot be determined. */
  assertHas(real: string | undefined, given: string, access: "read" | "write" = "read"): void {
    if (real !== undefined && this.isClosed(real)) throw inDataDirectory(given);
    if (real === undefined || !this.has(real)) throw outside(given, this.roots, access);
    const root = this.innermostRoot(real);
    if (access === "write" && root.isReadOnly) throw readOnly(given, root);
  }

  /** The closed directory as a walk from `directory` reaches it, which follows no links; undefined if it does not. */
  closedFrom(directory: string, real: string): string | undefined {
    const { closed } = this;
    if (closed === undefined || !isInside(closed, real)) return undefined;
    return resolve(directory, relative(real, closed));
  }

  private isClosed(real: string): boolean {
    return this.closed !== undefined && isInside(real, this.closed);
  }

  /** Of the roots that contain the path, the innermost decides. A root that was given both ways is read-only. */
  private innermostRoot(real: string): LocalRoot {
    const around = this.roots.filter((root) => isInside(real, root.path));
    return around.reduce((innermost, root) => {
      const isSame = root.path === innermost.path;
      return root.path.length > innermost.path.length || (isSame && root.isReadOnly) ? root : innermost;
    });
  }
}

/**
 * The operator's roots: `DIR`, or `DIR:ro` for reading only. Throws if one is missing or in the data directory; one that
 * contains it is fine.
 */
export async function resolveRoots(roots: readonly string[], dataDir: string): Promise<LocalRoot[]> {
  const resolved: LocalRoot[] = [];
  const closed = await realOrSelf(resolve(dataDir));
  for (const root of roots) {
    const isReadOnly = root.endsWith(":ro");
    const path = await realpath(resolve(isReadOnly ? root.slice(0, -":ro".length) : root)).catch(() => {
      throw new Error(`--allow-local-root ${root}: there is no such directory`);
    });
    if (isInside(path, closed)) {
      throw new Error(
        `--allow-local-root ${root}: it is in the data directory ${dataDir}, which jobs may never access; name a directory outside it`,
      );
    }
    resolved.push({ path, isReadOnly });
  }
  return resolved;
}

function inDataDirectory(given: string): ServiceError {
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is in the server's data directory, which jobs may not access by file://; put the file elsewhere`,
  );
}

function outside(given: string, roots: readonly LocalRoot[], access: "read" | "write"): ServiceError {
  const shown = roots.map(({ path, isReadOnly }) => (isReadOnly ? `${path}:ro` : path));
  const allowed = roots.length === 0 ? "no local root is allowed" : `allowed roots: ${shown.join(", ")}`;
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is not under a directory that this server may ${access} (${allowed}); start it with --allow-local-root DIR`,
  );
}

function readOnly(given: string, { path }: LocalRoot): ServiceError {
  return new ServiceError(
    "path_not_allowed",
    `"${given}" may not be written: its root ${path} is allowed for reading only (--allow-local-root ${path}:ro); write to another root, or allow this one without :ro`,
  );
}
