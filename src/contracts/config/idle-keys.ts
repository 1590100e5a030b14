/** Removes YAML keys that mean the same as their absence, such as `null` for an optional key. Pure. */
import { legalKeysOf } from "../field-errors.ts";

type Path = readonly (string | number)[];
type IsIdle = (path: Path, value: unknown) => boolean;

/**
 * Copies the value without the legal keys that are `null`, and without those that `isIdle` names. Every other key
 * stays, so that it is refused. Maps whose keys users choose (`predictor.config`) are not searched.
 */
export function withoutIdleKeys(schema: unknown, value: unknown, isIdle: IsIdle = () => false): unknown {
  const copyOf = (at: unknown, path: Path): unknown => {
    if (Array.isArray(at)) return at.map((item, index) => copyOf(item, [...path, index]));
    const legal = at !== null && typeof at === "object" ? legalKeysOf(schema, path) : [];
    if (legal.length === 0) return at;
    const members = Object.entries(at as Record<string, unknown>).filter(
      ([name, member]) => !(member === null && legal.includes(name)) && !isIdle([...path, name], member),
    );
    return Object.fromEntries(
      members.map(([name, member]) => [
        name,
        legal.includes(name) ? copyOf(member, [...path, name]) : member,
      ]),
    );
  };
  return copyOf(value, []);
}
