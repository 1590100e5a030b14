/** Checks, purely, whether the inputs of an aggregate or a transformed column fit its implementation. */
import type { Resource } from "../../contracts/config/app-resources.ts";
import type { Implementation } from "./built-ins.ts";
import type { ResourceFault } from "./load-app.ts";
import { isAssignable, isOfType, parseValueType, typeText, type ValueType } from "./value-types.ts";

/** The names that inputs of an application may refer to. */
export interface Names {
  /** Types of raw columns by name; transformed columns have only names here. */
  rawColumns: ReadonlyMap<string, string>;
  transformedColumns: ReadonlySet<string>;
  /** Types of what an arg may name: constants, and for transformed columns also aggregates. */
  args: ReadonlyMap<string, ValueType | undefined>;
}

export interface Given {
  columns: Readonly<Record<string, string | readonly string[]>>;
  args: Readonly<Record<string, unknown>>;
}

/** Args may be given beside the inputs, or inside them. */
export function givenTo({ inputs, args }: Resource<"aggregate" | "transformed_column">) {
  return { columns: inputs.columns, args: { ...inputs.args, ...args } };
}

export function inputFaults(given: Given, wanted: Implementation, names: Names): ResourceFault[] {
  return [
    ...columnFaults(given.columns, wanted.columns, names),
    ...argFaults(given.args, wanted.args, names),
  ];
}

function columnFaults(
  given: Given["columns"],
  wanted: Implementation["columns"],
  names: Names,
): ResourceFault[] {
  const faults = setFaults(["inputs", "columns"], Object.keys(given), Object.keys(wanted));
  for (const [input, type] of Object.entries(wanted)) {
    const value = Object.hasOwn(given, input) ? given[input] : undefined;
    if (value === undefined) continue;
    const path = ["inputs", "columns", input];
    if (Array.isArray(type) !== Array.isArray(value)) {
      faults.push({
        path,
        detail: Array.isArray(type) ? "must be a list of columns" : "must be one column, not a list",
      });
      continue;
    }
    const types = [type].flat()[0]!;
    for (const column of [value].flat() as string[]) {
      const detail = columnFault(column, types, names);
      if (detail !== undefined) faults.push({ path, detail });
    }
  }
  return faults;
}

function columnFault(column: string, types: string, names: Names): string | undefined {
  if (names.transformedColumns.has(column))
    return `"${column}" is a transformed column, but only raw columns are allowed`;
  const type = names.rawColumns.get(column);
  if (type === undefined)
    return `"${column}" is not defined; raw columns are ${[...names.rawColumns.keys()].join(", ")}`;
  const legal = types.split("|");
  return legal.includes(type) ? undefined : `"${column}" is a ${type}, and must be ${legal.join(" or ")}`;
}

function argFaults(given: Given["args"], wanted: Implementation["args"], names: Names): ResourceFault[] {
  const faults = setFaults(["args"], Object.keys(given), Object.keys(wanted));
  for (const [arg, declared] of Object.entries(wanted)) {
    const type = parseValueType(declared);
    if (!Object.hasOwn(given, arg) || given[arg] === undefined || typeof type === "string") continue;
    const detail = argFault(given[arg], type, names);
    if (detail !== undefined) faults.push({ path: ["args", arg], detail });
  }
  return faults;
}

/**
 * A string names a constant or an aggregate. A string that begins and ends with quotes, such as `'"a"'`, is a value.
 */
function argFault(value: unknown, type: ValueType, names: Names): string | undefined {
  if (typeof value === "string" && !isQuoted(value)) {
    const named = names.args.get(value);
    if (named === undefined && names.args.has(value)) return undefined;
    if (named === undefined) return `"${value}" is not defined; a text is written "\\"${value}\\""`;
    return isAssignable(named, type)
      ? undefined
      : `${value} is of type ${typeText(named)}, and must be ${typeText(type)}`;
  }
  const literal = typeof value === "string" ? value.slice(1, -1) : value;
  return isOfType(literal, type) ? undefined : `${JSON.stringify(literal)} is not of type ${typeText(type)}`;
}

export function isQuoted(text: string): boolean {
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"');
}

function setFaults(
  path: readonly string[],
  given: readonly string[],
  wanted: readonly string[],
): ResourceFault[] {
  const missing = wanted.filter((name) => !given.includes(name));
  const extra = given.filter((name) => !wanted.includes(name));
  return [
    ...missing.map((name) => ({ path, detail: `"${name}" is required, and missing` })),
    ...extra.map((name) => ({
      path: [...path, name],
      detail: `"${name}" is not supported; ${wanted.length === 0 ? "none is" : `legal are ${wanted.join(", ")}`}`,
    })),
  ];
}
