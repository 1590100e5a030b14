/** The names of APIs that no configuration file gave (`placed-apis.ts`): they have a point, which others must not have. */

/** Whether an API was placed, by its name. */
export function isPlaced(name: string): boolean {
  return name.includes(".");
}
