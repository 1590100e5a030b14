/** Paths of an application's data. */

/** Whether data is a file of the project itself, rather than in a store. */
export function isOwnPath(path: string): boolean {
  return !path.includes("://");
}
