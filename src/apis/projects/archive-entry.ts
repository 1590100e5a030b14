/**
 * Decides what an entry of an uploaded archive may be: a file or a directory whose path stays inside the project. Pure.
 */
import { PROJECT_DEPTH_MAX, PROJECT_PATH_BYTES_MAX } from "../../contracts/limits/projects.ts";

export const CONFIG = "config.yaml";
export const FILES = "project";
/** The longest file name that Linux allows. */
const NAME_BYTES_MAX = 255;

const FILE_TYPES = new Set(["File", "OldFile", "ContiguousFile"]);
const DIRECTORY_TYPES = new Set(["Directory", "GNUDumpDir"]);
const NAMES: Record<string, string> = {
  SymbolicLink: "a symbolic link",
  Link: "a hard link",
  CharacterDevice: "a device",
  BlockDevice: "a device",
  FIFO: "a named pipe",
};

export interface ArchiveEntry {
  path: string;
  type: string;
  size: number;
}

export type Placing =
  | { fault: string }
  /** The entry is neither the configuration nor part of the project, and is skipped. */
  | { kind: "other" }
  /** `path` is relative and normalized; `directories` are its parents. */
  | { kind: "file" | "directory"; path: string; directories: string[] };

export function placeOf({ path, type, size }: ArchiveEntry): Placing {
  const shown = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  if (!Number.isSafeInteger(size) || size < 0) return { fault: `${shown} has an impossible size` };
  const isFile = FILE_TYPES.has(type);
  if (!isFile && !DIRECTORY_TYPES.has(type)) {
    const what = NAMES[type] ?? `of the type ${JSON.stringify(type)}`;
    return {
      fault: `${shown} is ${what}; only files and directories are allowed: put the file itself there`,
    };
  }
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  const fault = pathFault(path, names);
  if (fault !== undefined) return { fault: `${shown} ${fault}` };
  const [top] = names;
  if (top !== FILES && top !== CONFIG) return { kind: "other" };
  if ((top === CONFIG) !== isFile && names.length === 1)
    return { fault: `${CONFIG} must be a file, and ${FILES} a directory` };
  if (top === CONFIG && names.length > 1)
    return { fault: `${shown} is below ${CONFIG}, which must be a file` };
  const directories = names.slice(0, -1).map((_, at) => names.slice(0, at + 1).join("/"));
  return { kind: isFile ? "file" : "directory", path: names.join("/"), directories };
}

function pathFault(path: string, names: readonly string[]): string | undefined {
  if (path.startsWith("/")) return "is an absolute path; paths in the archive are relative";
  if (names.includes("..")) return "leads out of the archive";
  if (path.includes("\0")) return "has a NUL byte";
  if (names.length > PROJECT_DEPTH_MAX) return `has more than ${PROJECT_DEPTH_MAX} directories above it`;
  if (Buffer.byteLength(path) > PROJECT_PATH_BYTES_MAX)
    return `has more than ${PROJECT_PATH_BYTES_MAX} bytes`;
  if (names.some((name) => Buffer.byteLength(name) > NAME_BYTES_MAX))
    return `has a name of more than ${NAME_BYTES_MAX} bytes`;
  return undefined;
}
