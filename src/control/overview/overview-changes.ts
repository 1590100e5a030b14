/** What has changed between two overviews: the data of `event: changes`. Pure. */
import type {
  OverviewApi,
  OverviewChanges,
  OverviewShown,
} from "../../contracts/http/overview-operations.ts";

/** The parts that are sent as a whole if anything in them has changed. */
const WHOLE_PARTS = ["server", "compute", "jobs", "job_counts", "attention"] as const;

/** The text of each part that was compared: an overview is compared with the one before and the one after it. */
const texts = new WeakMap<object, string>();

function textOf(part: object): string {
  const known = texts.get(part);
  if (known !== undefined) return known;
  const text = JSON.stringify(part);
  texts.set(part, text);
  return text;
}

/** Undefined if nothing but the time has changed. */
export function changesBetween(before: OverviewShown, after: OverviewShown): OverviewChanges | undefined {
  const changes: OverviewChanges = { time: after.time };
  for (const part of WHOLE_PARTS)
    if (textOf(before[part]) !== textOf(after[part])) Object.assign(changes, { [part]: after[part] });
  if (!areSame(before.apis, after.apis)) addApis(changes, before.apis, after.apis);
  return Object.keys(changes).length === 1 ? undefined : changes;
}

/** Whether they are the same objects. Those that did not change are: hundreds of them, each second. */
function areSame(before: readonly OverviewApi[], after: readonly OverviewApi[]): boolean {
  return before.length === after.length && before.every((api, at) => api === after[at]);
}

function addApis(
  changes: OverviewChanges,
  before: readonly OverviewApi[],
  after: readonly OverviewApi[],
): void {
  const known = new Map(before.map((api) => [api.name, api]));
  const isChanged = (api: OverviewApi) => {
    const former = known.get(api.name);
    known.delete(api.name);
    return former !== api && (former === undefined || textOf(former) !== textOf(api));
  };
  const apis = after.filter(isChanged);
  if (apis.length > 0) changes.apis = apis;
  // Those that no later one has taken.
  if (known.size > 0) changes.apis_gone = [...known.keys()];
}
