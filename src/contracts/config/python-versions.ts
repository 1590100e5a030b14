/** Versions of Python as `predictor.python` and messages write them: `3.11`. */

/** The oldest Python that the worker's runtime supports. */
export const PYTHON_OLDEST = "3.9";

/** The minor version in the text of `sys.version`. */
export function minorVersionOf({ version }: { version: string }): string {
  return /^\d+\.\d+/.exec(version)?.[0] ?? version;
}

export function isTooOld(version: string): boolean {
  const [major, minor] = numbersOf(version);
  const [oldestMajor, oldestMinor] = numbersOf(PYTHON_OLDEST);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}

function numbersOf(version: string): [number, number] {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return [major, minor];
}
