/** Brings a known overview up to date with what the stream says has changed. Pure. */
import type { Overview, OverviewApi, OverviewChanges } from "../shapes.ts";

export function applyChanges(known: Overview, changes: OverviewChanges): Overview {
  const { apis, apis_gone = [], ...whole } = changes;
  const given = Object.fromEntries(Object.entries(whole).filter(([, value]) => value !== undefined));
  const next = { ...known, ...(given as Partial<Overview>) };
  if (apis === undefined && apis_gone.length === 0) return next;
  return { ...next, apis: changedApis(known.apis, apis ?? [], new Set(apis_gone)) };
}

/** Unchanged APIs stay the same objects, so that nothing of them is drawn again. */
function changedApis(
  known: readonly OverviewApi[],
  changed: readonly OverviewApi[],
  gone: ReadonlySet<string>,
): OverviewApi[] {
  const byName = new Map(known.map((api) => [api.name, api]));
  for (const api of changed) byName.set(api.name, api);
  for (const name of gone) byName.delete(name);
  return [...byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}
