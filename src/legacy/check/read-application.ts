/**
 * Reads applications on a thread: all YAML files of a project, and the hashes of its other files. Those may be large,
 * and other requests must not wait for them.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { type FieldError, ServiceError } from "../../contracts/errors.ts";
import {
  CONFIG_READ_HERE_BYTES_MAX,
  READ_ASIDE_HEAP_MIB,
  READ_ASIDE_LIMIT_MS,
} from "../../contracts/limits/event-loop.ts";
import { SideThread } from "../../engine/side-work.ts";
import { checkApplication } from "./application.ts";
import { buildGraph } from "./build-graph.ts";
import { isApplication } from "./load-app.ts";
import type { ResourceGraph } from "./resource-graph.ts";

export interface ApplicationTask {
  /** Text of the `app.yaml`, and the user's name for the file. */
  text: string;
  file: string;
  /** Directory of the project. */
  directory: string;
  /** If a graph is wanted: the environment, and the version of its data. */
  graph?: { environment: string; version: string };
}

/** `none`: the text is not an `app.yaml`. */
export type ReadApplication =
  | { kind: "none" }
  | { kind: "faulty"; errors: FieldError[] }
  | { kind: "read"; name: string; graph: ResourceGraph | undefined };

const HASHED_AT_ONCE = 1024 * 1024;
/** More errors are not reported. */
const ERRORS_MAX = 1000;

const aside = new SideThread<ApplicationTask, ReadApplication>({
  program: new URL("./application-thread.js", import.meta.url),
  limitMs: READ_ASIDE_LIMIT_MS,
  heapMiB: READ_ASIDE_HEAP_MIB,
  tooMuch: () =>
    new ServiceError(
      "invalid_configuration",
      `the application's YAML files take more than ${READ_ASIDE_LIMIT_MS / 1000} s or ${READ_ASIDE_HEAP_MIB} MiB to read: list the files that it does not need in .quernignore`,
    ),
});

/** `sender`: a key, a client's address, or an application whose graph is needed. Senders take turns. */
export async function readApplication(task: ApplicationTask, sender: string): Promise<ReadApplication> {
  // Most configurations are lists of APIs, and short.
  if (task.text.length <= CONFIG_READ_HERE_BYTES_MAX && !isApplication(task.text)) return { kind: "none" };
  return aside.run(task, { bytes: task.text.length, sender });
}

/** Runs on the thread. */
export function readHere({ text, file, directory, graph }: ApplicationTask): ReadApplication {
  const application = checkApplication(text, file, directory);
  if (application === undefined) return { kind: "none" };
  if ("errors" in application) return { kind: "faulty", errors: application.errors.slice(0, ERRORS_MAX) };
  const { name } = application;
  if (graph === undefined) return { kind: "read", name, graph };
  const inputs = {
    ...graph,
    requirements: textOf(join(directory, "requirements.txt")),
    hashOf: (path: string) => hashOf(join(directory, path)),
  };
  return { kind: "read", name, graph: buildGraph(application, inputs) };
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function hashOf(file: string): string {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(HASHED_AT_ONCE);
  try {
    const fd = openSync(file, "r");
    try {
      for (let bytes = readSync(fd, piece); bytes > 0; bytes = readSync(fd, piece))
        hash.update(piece.subarray(0, bytes));
    } finally {
      closeSync(fd);
    }
    return hash.digest("hex");
  } catch (error) {
    throw new ServiceError("invalid_project", `${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
