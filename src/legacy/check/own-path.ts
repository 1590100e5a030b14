/** Classifies paths of an application's data. */

/** Whether data is a file of the project, not in a store. */
export function isOwnPath(path: string): boolean {
  return !path.includes("://");
}
