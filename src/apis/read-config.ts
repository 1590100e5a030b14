/** Reads configurations: short ones here, and long ones in a thread, so that nobody waits for what somebody else deploys. */
import { ServiceError } from "../contracts/errors.ts";
import { CONFIG_READ_HERE_BYTES_MAX, READ_ASIDE_HEAP_MIB, READ_ASIDE_LIMIT_MS } from "../contracts/limits.ts";
import { SideThread } from "../engine/side-work.ts";
import { type ParsedApi, type ReadConfig, readConfig } from "./parse-config.ts";

export interface ConfigTask {
  text: string;
  /** As the user calls it. */
  file: string;
}

/** An API whose places are known beforehand: functions do not cross threads. */
type PlacedApi = Omit<ParsedApi, "positionOf"> & { places: Record<string, string> };

interface PlacedConfig {
  apis: PlacedApi[];
  errors: ReadConfig["errors"];
}

/** What deploy.ts may find fault with, once it sees the project's files and what else is deployed. */
const PLACES = [
  [],
  ["kind"],
  ["networking", "endpoint"],
  ["compute", "gpu"],
  ["predictor", "path"],
  ["predictor", "python_path"],
  ["predictor", "python"],
];
/** More are not told of. */
const ERRORS_MAX = 1000;

const aside = new SideThread<ConfigTask, PlacedConfig>({
  program: new URL("./config-thread.js", import.meta.url),
  limitMs: READ_ASIDE_LIMIT_MS,
  heapMiB: READ_ASIDE_HEAP_MIB,
  tooMuch: () =>
    new ServiceError(
      "invalid_configuration",
      `the configuration takes more than ${READ_ASIDE_LIMIT_MS / 1000} s or ${READ_ASIDE_HEAP_MIB} MiB to read: make it shorter, or put its data into files of the project`,
    ),
});

export async function readLongConfig(text: string, file: string): Promise<ReadConfig> {
  if (text.length <= CONFIG_READ_HERE_BYTES_MAX) return readConfig(text, file);
  const { apis, errors } = await aside.run({ text, file }, { bytes: text.length });
  const placed = apis.map(({ places, ...api }) => ({
    ...api,
    positionOf: (path: readonly (string | number)[]) => places[path.join(".")] ?? places[""]!,
  }));
  return { apis: placed, errors };
}

/** The thread's side. */
export function readPlaced(text: string, file: string): PlacedConfig {
  const { apis, errors } = readConfig(text, file);
  return { apis: apis.map(placed), errors: errors.slice(0, ERRORS_MAX) };
}

function placed({ positionOf, ...api }: ParsedApi): PlacedApi {
  const paths = [...PLACES, ...(api.config.apis ?? []).map((_, at) => ["apis", at])];
  return { ...api, places: Object.fromEntries(paths.map((path) => [path.join("."), positionOf(path)])) };
}
