/** What changed from one version to the next: settings by their path, and files by their contents. Pure. */
import { shown } from "../../server/exact-json.ts";
import type { Version } from "../../shapes.ts";

export interface VersionChange {
  /** Such as `predictor.config.threshold`, or a file's path. */
  what: string;
  before: string | undefined;
  after: string | undefined;
}

const SHORT_HASH = 8;

export function changesOf(before: Version, after: Version): VersionChange[] {
  return [
    ...difference(settingsOf(before.spec), settingsOf(after.spec)),
    ...difference(filesOf(before), filesOf(after)),
  ];
}

export function haveOtherFiles(before: Version, after: Version): boolean {
  return difference(filesOf(before), filesOf(after)).length > 0;
}

/** The settings with their values as text; those of objects one by one, lists as a whole. */
function settingsOf(spec: unknown, path: readonly string[] = []): Map<string, string> {
  if (typeof spec !== "object" || spec === null || Array.isArray(spec))
    return new Map([[path.join("."), shown(spec)]]);
  return new Map(Object.entries(spec).flatMap(([name, value]) => [...settingsOf(value, [...path, name])]));
}

function filesOf({ files }: Version): Map<string, string> {
  return new Map(
    (files ?? []).map(({ path, size, sha256 }) => [path, `${sha256.slice(0, SHORT_HASH)} (${size} bytes)`]),
  );
}

function difference(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): VersionChange[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names]
    .sort()
    .filter((what) => before.get(what) !== after.get(what))
    .map((what) => ({ what, before: before.get(what), after: after.get(what) }));
}
