/**
 * Parses the configuration file: YAML becomes checked API entries, or all errors at once with file, line and column
 * (docs/contract/configuration.md#configuration-errors). `predictor.config` is kept as JSON text, with every digit of
 * its integers.
 */
import { JsonNumber, stringifyExact } from "../../base/json/exact.ts";
import { readYamlFile, type YamlPath } from "../../config/yaml-file.ts";
import { ruleFaults } from "../../contracts/config/api-rules.ts";
import { type ApiConfig, apiSchema, OF_KINDS, type SplitApi } from "../../contracts/config/apis.ts";
import { FORMER_GUIDE, formerCure, isIdleFormerKey } from "../../contracts/config/former-keys.ts";
import { withoutIdleKeys } from "../../contracts/config/idle-keys.ts";
import { type FieldError, ServiceError } from "../../contracts/errors.ts";
import { legalKeysOf, namedIssues } from "../../contracts/field-errors.ts";
import { APIS_MAX, CONFIG_BYTES_MAX } from "../../contracts/limits/configuration.ts";
import { withoutFaults } from "./salvage.ts";

export type DeployableConfig = ApiConfig & {
  kind: "RealtimeAPI" | "BatchAPI";
  predictor: NonNullable<ApiConfig["predictor"]>;
};

export type SplitterConfig = ApiConfig & { kind: "TrafficSplitter"; apis: SplitApi[] };

export interface ParsedApi {
  config: DeployableConfig | SplitterConfig;
  /** `predictor.config` as JSON text. */
  configText: string;
  /** The entry as submitted, as JSON text with every number as it was written. */
  submitted: string;
  /** Finds `file:line:column` of a path in this entry, for errors that only the project's files show. */
  positionOf: (path: readonly (string | number)[]) => string;
  /** False if `kind` is wrong. Then no rule that depends on it can be checked. */
  hasKind: boolean;
}

export interface ReadConfig {
  /** Entries with errors are included as far as they are valid, so that their other errors can be reported too. */
  apis: ParsedApi[];
  errors: FieldError[];
}

type Path = YamlPath;

/** Parses the text, and finds all errors that it shows without the project's files. */
export function readConfig(text: string, file: string): ReadConfig {
  const read = readYamlFile(text, file);
  if (Array.isArray(read)) return { apis: [], errors: read };
  const { value: entries, positionOf } = read;
  if (!Array.isArray(entries) || entries.length === 0) {
    const detail = "the file must be a list with at least one API: begin each with `- name: …`";
    return { apis: [], errors: [{ pointer: `${file}:1:1`, detail }] };
  }
  if (entries.length > APIS_MAX) {
    const detail = `the file has ${entries.length} APIs, at most ${APIS_MAX} are allowed: use several files`;
    return { apis: [], errors: [{ pointer: `${file}:1:1`, detail }] };
  }
  const exact = read.exact as { predictor?: { config?: unknown } }[];
  const errors: FieldError[] = [];
  const apis = entries.map((entry: unknown, i) => parseEntry(entry, exact[i], i, positionOf, errors));
  errors.push(...duplicateNames(entries, positionOf));
  return { apis: apis.filter((api) => api !== undefined), errors };
}

function parseEntry(
  entry: unknown,
  exact: { predictor?: { config?: unknown } } | undefined,
  index: number,
  positionOf: (path: Path) => string,
  errors: FieldError[],
): ParsedApi | undefined {
  if (entry === null || typeof entry !== "object" || Array.isArray(entry)) {
    errors.push({ pointer: positionOf([index]), detail: "must be a map with name, kind and predictor" });
    return undefined;
  }
  const { isHandler, renamed } = withPredictor(entry as Record<string, unknown>);
  const api = withoutIdleKeys(apiSchema, renamed, isIdleFormerKey) as Record<string, unknown>;
  const asWritten = (path: Path) =>
    isHandler && path[0] === "predictor" ? ["handler", ...path.slice(1)] : path;
  const label = typeof api.name === "string" ? `${api.name}: ` : "";
  const checked = apiSchema.safeParse(api);
  const add = (path: Path, detail: string, more: Pick<FieldError, "guide"> = {}) =>
    errors.push({
      pointer: positionOf([index, ...asWritten(path)]),
      detail: `${label}${path.length === 0 ? "" : `${asWritten(path).join(".")}: `}${detail}`,
      ...more,
    });
  const addFormer = (path: Path, cure: string) => add(path, cure, { guide: FORMER_GUIDE });
  if (isHandler) addFormer(["handler"], formerCure(["handler"], api.predictor)!);
  if (!checked.success) {
    for (const { path, detail } of namedIssues(checked.error.issues, api, (at) =>
      legalKeysOf(apiSchema, at),
    )) {
      const cure = formerCure(path, valueAt(api, path));
      if (cure === undefined) add(path, detail);
      else addFormer(path, cure);
    }
  }
  const faulty = checked.error?.issues ?? [];
  const isFaulty = (name: string | undefined) => faulty.some(({ path }) => path[0] === name);
  const data = checked.data ?? salvage(api, faulty, index);
  if (data === undefined) return undefined;
  // The rules between fields are not applied to a field that is wrong itself.
  for (const { path, detail } of ruleFaults(data)) if (!isFaulty(path[0])) add(path, detail);
  const hasKind = !isFaulty("kind");
  for (const { path, kinds } of OF_KINDS) {
    if (hasKind && !kinds.includes(data.kind) && valueAt(api, path) !== undefined)
      add(path, `is for a ${kinds.join(" or a ")} only, this is a ${data.kind}; leave it out`);
  }
  if (data.predictor === undefined && data.kind !== "TrafficSplitter") {
    if (hasKind && !isFaulty("predictor"))
      add([], "predictor is required: give predictor.path, the file with class PythonPredictor");
    return undefined;
  }
  const values = exact?.predictor?.config ?? {};
  const configText = stringifyExact(values);
  for (const { path, detail } of configFaults(values, configText))
    add(["predictor", "config", ...path], detail);
  return {
    // A splitter whose list is wrong has none, and what is said of its list was said.
    config: {
      ...data,
      ...(data.kind === "TrafficSplitter" && { apis: data.apis ?? [] }),
    } as ParsedApi["config"],
    hasKind,
    configText,
    submitted: stringifyExact(exact ?? api),
    positionOf: (path) => positionOf([index, ...asWritten(path)]),
  };
}

/**
 * Cortex 0.34 calls the predictor `handler`. The key is refused, but its content is still checked, to report all errors
 * at once.
 */
function withPredictor(entry: Record<string, unknown>): { renamed: object; isHandler: boolean } {
  const { handler: predictor = null, ...rest } = entry;
  if (predictor === null || (rest.predictor ?? null) !== null) return { renamed: entry, isHandler: false };
  return { renamed: { ...rest, predictor }, isHandler: true };
}

/** An entry without its errors. It keeps its name even if that is not legal. Undefined if too little is left. */
function salvage(
  api: Record<string, unknown>,
  faults: Parameters<typeof withoutFaults>[1],
  index: number,
): ApiConfig | undefined {
  const left = withoutFaults(api, faults) as Record<string, unknown>;
  const { data } = apiSchema.safeParse({ ...left, name: left.name ?? `entry-${index + 1}` });
  return data === undefined
    ? undefined
    : { ...data, name: typeof api.name === "string" ? api.name : data.name };
}

/** The values of `predictor.config` that cannot be passed to a predictor. */
function configFaults(values: unknown, configText: string): { path: Path; detail: string }[] {
  const faults = notFinite(values).map(({ path, text }) => ({
    path,
    detail: `${text} cannot be passed to a predictor, because JSON has only finite numbers; write it in quotes and convert it in __init__`,
  }));
  const bytes = Buffer.byteLength(configText);
  if (bytes <= CONFIG_BYTES_MAX) return faults;
  const detail = `has ${bytes} bytes as compact JSON, and at most ${CONFIG_BYTES_MAX} are allowed: put large values into a file of the project, and give its path`;
  return [...faults, { path: [], detail }];
}

/** Finds `.inf`, `.nan`, and numbers that are too large for a float. */
function notFinite(value: unknown, path: Path = []): { path: Path; text: string }[] {
  if (value instanceof JsonNumber)
    return value.isInteger || Number.isFinite(Number(value.text)) ? [] : [{ path, text: value.text }];
  if (value === null || typeof value !== "object") return [];
  if (Array.isArray(value)) return value.flatMap((item, at) => notFinite(item, [...path, at]));
  return Object.entries(value).flatMap(([name, member]) => notFinite(member, [...path, name]));
}

function duplicateNames(entries: readonly unknown[], positionOf: (path: Path) => string): FieldError[] {
  const seen = new Map<string, number>();
  const errors: FieldError[] = [];
  entries.forEach((entry, i) => {
    const name = (entry as { name?: unknown } | null)?.name;
    if (typeof name !== "string") return;
    if (seen.has(name))
      errors.push({
        pointer: positionOf([i, "name"]),
        detail: `name: "${name}" is used by two APIs; names are unique`,
      });
    seen.set(name, i);
  });
  return errors;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, name) => (at === null || typeof at !== "object" ? undefined : (at as Record<string, unknown>)[name]),
    value,
  );
}

export function invalid(errors: readonly FieldError[]): ServiceError {
  const [first] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return new ServiceError("invalid_configuration", `${first!.pointer}: ${first!.detail}${more}`, {
    fields: errors,
  });
}
