/**
 * Explains a failed installation in one sentence from the output of pip (22 to 26) or uv: which requirement failed, and
 * what to do. Pure. If the output has other words, there is no explanation, and the error shows the installer's last
 * lines only.
 */

const UNREACHABLE = /Retry\(total=0|Max retries exceeded|error: Failed to fetch|error sending request/;
const NOT_FOUND = [
  /^ERROR: No matching distribution found for (.+)$/m,
  /Because (\S+) has no wheels /,
  /Because there (?:is|are) no versions? of ([^\s,]+)/,
  /Because (\S+) was not found in the package registry/,
  /Because the current Python version [\s\S]*?you\s+require\s+([^\s,]+)/,
];
const NOT_BUILT = [
  /Failed to (?:download and )?build `([^`]+)`/,
  /Failed building wheel for ([\w.-]+)/,
  /Failed to build '([^']+)' when /,
];
/** If a build fails early, pip does not name the package. It is the last one that pip started with. */
const IN_HAND = /^(?:Collecting|Processing) (\S+)/gm;
const NOT_PREPARED =
  /^ *× (?:Preparing metadata|Getting requirements to build|pip subprocess to install build|python setup\.py)/m;

/** `version` is that of the Python that the packages were installed for, such as `3.11`. */
export function explainInstallFailure(output: string, version: string): string | undefined {
  const notFound = firstOf(NOT_FOUND, output);
  const notBuilt = firstOf(NOT_BUILT, output) ?? lastInHand(output);
  if (notFound === undefined && notBuilt === undefined) return undefined;
  if (UNREACHABLE.test(output))
    return `the package index does not respond; check that this machine reaches it, or name another with PIP_INDEX_URL (UV_INDEX_URL for uv)`;
  const cure = `require another version of it, or use predictor.python to choose a Python that it has builds for`;
  if (notBuilt === undefined) return `there is no ${notFound} for Python ${version}; ${cure}`;
  const asked = requirementOf(notBuilt, output);
  if (asked === undefined)
    return `building ${notBuilt} for Python ${version} failed; correct it, or choose another Python with predictor.python`;
  return `${asked} has no build for Python ${version}, and building it from source failed; ${cure}`;
}

function firstOf(patterns: readonly RegExp[], output: string): string | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(output)?.[1]?.trim();
    if (found !== undefined) return found;
  }
  return undefined;
}

function lastInHand(output: string): string | undefined {
  const failure = NOT_PREPARED.exec(output);
  if (failure === null) return undefined;
  return [...output.slice(0, failure.index).matchAll(IN_HAND)].at(-1)?.[1];
}

/**
 * The requirement as written: `scikit-learn==0.21.3` for `scikit-learn`. Undefined if it did not come from an index:
 * then it is a local one.
 */
function requirementOf(name: string, output: string): string | undefined {
  if (name.includes("==")) return name;
  const asked = [...output.matchAll(/^Collecting ((\w[\w.-]*)\S*)/gm)];
  return asked.find(([, , plain]) => normal(plain!) === normal(name))?.[1];
}

/** `-`, `_` and `.` are equal in names of packages. */
function normal(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, "-");
}
