/**
 * The types of args, constants and aggregates, purely:
 * - scalars `INT`, `FLOAT`, `STRING`, `BOOL`, and alternatives such as `INT|FLOAT`
 * - lists `[T]`
 * - maps `{STRING: T}`, and maps with given keys `{name: T}`
 *
 * An INT is also a FLOAT.
 */

const SCALARS = ["INT", "FLOAT", "STRING", "BOOL"] as const;
type Scalar = (typeof SCALARS)[number];

export type ValueType =
  | { form: "scalar"; anyOf: readonly Scalar[] }
  | { form: "list"; of: ValueType }
  | { form: "map"; key: ValueType; of: ValueType }
  | { form: "fields"; fields: Readonly<Record<string, ValueType>> };

/** Returns the error as text if `given` is not a type. */
export function parseValueType(given: unknown): ValueType | string {
  if (typeof given === "string") return parseScalar(given);
  if (Array.isArray(given)) {
    if (given.length !== 1) return "a list type has one element, such as [INT]";
    const of = parseValueType(given[0]);
    return typeof of === "string" ? of : { form: "list", of };
  }
  if (given === null || typeof given !== "object") return `${JSON.stringify(given)} is not a type`;
  return parseMap(given as Record<string, unknown>);
}

function parseScalar(text: string): ValueType | string {
  const names = text.split("|").map((name) => name.trim());
  const wrong = names.find((name) => !SCALARS.includes(name as Scalar));
  if (wrong !== undefined)
    return `"${wrong}" is not a type; types are ${SCALARS.join(", ")}, [T] and {STRING: T}`;
  return { form: "scalar", anyOf: names as Scalar[] };
}

function parseMap(given: Record<string, unknown>): ValueType | string {
  const entries = Object.entries(given);
  const [only] = entries;
  const key = entries.length === 1 ? parseScalar(only![0]) : "";
  if (typeof key !== "string") {
    const of = parseValueType(only![1]);
    return typeof of === "string" ? of : { form: "map", key, of };
  }
  const fields: [string, ValueType][] = [];
  for (const [name, type] of entries) {
    const parsed = parseValueType(type);
    if (typeof parsed === "string") return `${name}: ${parsed}`;
    fields.push([name, parsed]);
  }
  return { form: "fields", fields: Object.fromEntries(fields) };
}

/** The type as users write it. */
export function typeText(type: ValueType): string {
  switch (type.form) {
    case "scalar":
      return type.anyOf.join("|");
    case "list":
      return `[${typeText(type.of)}]`;
    case "map":
      return `{${typeText(type.key)}: ${typeText(type.of)}}`;
    case "fields":
      return `{${Object.entries(type.fields)
        .map(([name, of]) => `${name}: ${typeText(of)}`)
        .join(", ")}}`;
    default:
      return type satisfies never;
  }
}

/** Whether a value is of the type. */
export function isOfType(value: unknown, type: ValueType): boolean {
  switch (type.form) {
    case "scalar":
      return type.anyOf.some((scalar) => isScalar(value, scalar));
    case "list":
      return Array.isArray(value) && value.every((element) => isOfType(element, type.of));
    case "map":
      return (
        isPlainMap(value) &&
        Object.entries(value).every(([key, of]) => isKey(key, type.key) && isOfType(of, type.of))
      );
    case "fields": {
      if (!isPlainMap(value)) return false;
      const names = Object.keys(type.fields);
      return (
        Object.keys(value).length === names.length &&
        names.every((name) => Object.hasOwn(value, name) && isOfType(value[name], type.fields[name]!))
      );
    }
    default:
      return type satisfies never;
  }
}

/** Whether all values of type `given` are of type `wanted`. */
export function isAssignable(given: ValueType, wanted: ValueType): boolean {
  if (given.form === "scalar" && wanted.form === "scalar")
    return given.anyOf.every(
      (one) => wanted.anyOf.includes(one) || (one === "INT" && wanted.anyOf.includes("FLOAT")),
    );
  if (given.form === "list" && wanted.form === "list") return isAssignable(given.of, wanted.of);
  if (given.form === "map" && wanted.form === "map")
    return isAssignable(given.key, wanted.key) && isAssignable(given.of, wanted.of);
  if (given.form === "fields" && wanted.form === "fields") {
    const names = Object.keys(wanted.fields);
    return (
      Object.keys(given.fields).length === names.length &&
      names.every(
        (name) => given.fields[name] !== undefined && isAssignable(given.fields[name], wanted.fields[name]!),
      )
    );
  }
  return false;
}

function isScalar(value: unknown, type: Scalar): boolean {
  if (type === "INT") return typeof value === "bigint" || Number.isInteger(value);
  if (type === "FLOAT") return typeof value === "number" || typeof value === "bigint";
  return type === "STRING" ? typeof value === "string" : typeof value === "boolean";
}

/** Keys of YAML maps come as text. */
function isKey(key: string, type: ValueType): boolean {
  return isOfType(key, type) || (key.trim() !== "" && isOfType(Number(key), type));
}

function isPlainMap(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
