/**
 * The names of managed APIs, which no configuration file defines (`managed-apis.ts`). They contain a dot, which other
 * names must not.
 */

/** Whether an API is managed, by its name. */
export function isManaged(name: string): boolean {
  return name.includes(".");
}
