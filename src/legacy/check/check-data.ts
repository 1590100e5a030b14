/** Checks, purely, the data of an application: its environments, and its raw columns. */
import type { Resource } from "../../contracts/config/app-resources.ts";
import type { ResourceFault } from "./load-app.ts";

/** `rawColumns` are the types of all raw columns by name. */
export function* environmentFaults(
  { data, limit }: Resource<"environment">,
  rawColumns: ReadonlyMap<string, string>,
): Generator<ResourceFault> {
  if (limit?.num_rows !== undefined && limit.fraction_of_rows !== undefined)
    yield { path: ["limit"], detail: "give num_rows or fraction_of_rows, not both" };
  const ingested = data.schema.map((column) =>
    typeof column === "string" ? column : column.raw_column_name,
  );
  for (const [at, name] of ingested.entries()) {
    const path = ["data", "schema", at];
    if (!rawColumns.has(name)) yield { path, detail: `"${name}" is not a raw column` };
    if (ingested.indexOf(name) !== at) yield { path, detail: `"${name}" is named twice` };
  }
  const missing = [...rawColumns.keys()].filter((name) => !ingested.includes(name));
  const detail = `all raw columns must be ingested (missing: ${missing.join(", ")})`;
  if (missing.length > 0) yield { path: ["data", "schema"], detail };
}

export function* rawColumnFaults(column: Resource<"raw_column">): Generator<ResourceFault> {
  const { type, min, max, values } = column;
  if (type === "STRING_COLUMN")
    for (const key of ["min", "max"] as const)
      if (column[key] !== undefined) yield { path: [key], detail: "is for number columns only" };
  if (min !== undefined && max !== undefined && min > max)
    yield { path: ["min"], detail: `must not be above max (${max})` };
  for (const [at, value] of values?.entries() ?? [])
    if (!isOfColumn(value, type))
      yield { path: ["values", at], detail: `${JSON.stringify(value)} is not a value of a ${type}` };
}

function isOfColumn(value: unknown, type: Resource<"raw_column">["type"]): boolean {
  if (type === "STRING_COLUMN") return typeof value === "string";
  return typeof value === "number" && (type === "FLOAT_COLUMN" || Number.isInteger(value));
}
