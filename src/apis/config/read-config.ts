/**
 * Reads configurations: short ones directly, long ones in a thread, so that one caller's file does not delay other
 * callers.
 */
import { ServiceError } from "../../contracts/errors.ts";
import {
  CONFIG_READ_HERE_BYTES_MAX,
  READ_ASIDE_HEAP_MIB,
  READ_ASIDE_LIMIT_MS,
} from "../../contracts/limits/event-loop.ts";
import { SideThread } from "../../engine/side-work.ts";
import { type ParsedApi, type ReadConfig, readConfig } from "./parse-config.ts";

export interface ConfigTask {
  text: string;
  /** As the user calls the file. */
  file: string;
}

/** An API with its positions computed in advance, because functions cannot be passed between threads. */
type LocatedApi = Omit<ParsedApi, "positionOf"> & { places: Record<string, string> };

interface LocatedConfig {
  apis: LocatedApi[];
  errors: ReadConfig["errors"];
}

/** The fields in which deploy.ts may find errors, once it knows the project's files and the deployed APIs. */
const PLACES = [
  [],
  ["kind"],
  ["networking", "endpoint"],
  ["compute", "gpu"],
  ["predictor", "path"],
  ["predictor", "python_path"],
  ["predictor", "python"],
];
/** Further errors are not reported. */
const ERRORS_MAX = 1000;

const aside = new SideThread<ConfigTask, LocatedConfig>({
  program: new URL("./config-thread.js", import.meta.url),
  limitMs: READ_ASIDE_LIMIT_MS,
  heapMiB: READ_ASIDE_HEAP_MIB,
  tooMuch: () =>
    new ServiceError(
      "invalid_configuration",
      `the configuration takes more than ${READ_ASIDE_LIMIT_MS / 1000} s or ${READ_ASIDE_HEAP_MIB} MiB to read: make it shorter, or put its data into files of the project`,
    ),
});

/** `sender`: a key, or a client's address. Senders of long configurations take turns. */
export async function readLongConfig(text: string, file: string, sender: string): Promise<ReadConfig> {
  if (text.length <= CONFIG_READ_HERE_BYTES_MAX) return readConfig(text, file);
  const { apis, errors } = await aside.run({ text, file }, { bytes: text.length, sender });
  const located = apis.map(({ places, ...api }) => ({
    ...api,
    positionOf: (path: readonly (string | number)[]) => places[path.join(".")] ?? places[""]!,
  }));
  return { apis: located, errors };
}

/** Runs in the thread. */
export function readLocated(text: string, file: string): LocatedConfig {
  const { apis, errors } = readConfig(text, file);
  return { apis: apis.map(located), errors: errors.slice(0, ERRORS_MAX) };
}

function located({ positionOf, ...api }: ParsedApi): LocatedApi {
  const paths = [...PLACES, ...(api.config.apis ?? []).map((_, at) => ["apis", at])];
  return { ...api, places: Object.fromEntries(paths.map((path) => [path.join("."), positionOf(path)])) };
}
