/**
 * `/-/selections`: freezes which jobs or messages match, counts them, and acts on exactly these. A key for the jobs of an
 * API may select those of this API.
 */
import { type Context, Hono } from "hono";
import { needsKey } from "../../apis/api-routes.ts";
import type { Apis } from "../../apis/apis.ts";
import { timestamp, wallMs } from "../../base/clock.ts";
import type { JobFilter } from "../../batch/listing/job-filter.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { firstErrors } from "../../contracts/field-errors.ts";
import {
  JOB_ACTIONS,
  type JobAction,
  type JobSelection,
  type MessageSelection,
  SELECTION_KEYS,
  selectionSchema,
} from "../../contracts/http/overview-operations.ts";
import {
  SELECTED_JOBS_MAX,
  SELECTED_MESSAGES_MAX,
  SELECTION_BYTES_LIMIT,
  SELECTION_KEPT_MS,
} from "../../contracts/limits/responses.ts";
import { assertMayRepeat, type PriorityBound } from "../jobs/priority-bound.ts";
import type { QueueRoutesDeps } from "../queues.ts";
import { onlyLooks, tellAudit } from "../requests/audited.ts";
import {
  assertKey,
  assertMayKnow,
  assertStillOpen,
  callerOf,
  doneBy,
  letAnybodyIn,
  senderOf,
} from "../requests/authorization.ts";
import { bodyOwner, parseJson, readBody } from "../requests/body.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";
import { actOnJobs, type Caller, Outcome, redriveMessages, removeMessages } from "./act-on-selection.ts";
import { FrozenSelections, type Selected, selectionNotFound } from "./frozen-selections.ts";
import { timeNamed } from "./job-list.ts";

export interface SelectionDeps extends QueueRoutesDeps, PriorityBound {
  apis: Apis;
  searches: ReadsInTurn;
}

export function selectionRoutes(deps: SelectionDeps): Hono {
  const app = new Hono();
  const { keys } = deps;
  const frozen = new FrozenSelections();
  app.post("/-/selections", async (c) => {
    onlyLooks(c);
    assertMayKnow(c, keys);
    const cure = "select by a filter instead of by ids";
    const body = await readBody(c, bodyOwner(c, keys), { limit: SELECTION_BYTES_LIMIT, cure });
    const asked = parseJson(body);
    await assertMaySelect(c, deps, apiNamed(asked));
    return deps.searches.take(c, async () => {
      // Also the check is long if thousands of ids are wrong.
      const selected = await selectedBy(deps, parsed(asked));
      const selection_id = frozen.freeze(senderOf(c, keys), selected, performance.now());
      const expires_time = timestamp(BigInt(wallMs() + SELECTION_KEPT_MS) * 1_000_000n);
      return c.json({ selection_id, kind: selected.kind, count: selected.ids.length, expires_time }, 201);
    });
  });
  app.post("/-/selections/:id/:action", async (c) => {
    const { id, action } = c.req.param();
    const selected = frozen.find(id, senderOf(c, keys), performance.now());
    if (selected === undefined) {
      assertMayAct(c, deps);
      throw selectionNotFound(id);
    }
    await assertMaySelect(c, deps, selected.api);
    tellAudit(c, `${action}: not finished`);
    const outcome = new Outcome();
    const of = `${selected.ids.length} ${selected.kind}${selected.queue === undefined ? "" : ` of ${selected.queue}`}`;
    const done = () => `${outcome.changed} of ${of} changed, ${outcome.skippedCount} skipped`;
    try {
      await frozen.use(id, () => act(c, deps, { ...selected, action }, outcome));
    } catch (error) {
      tellAudit(c, `${action}: not finished, ${done()}`);
      throw error;
    }
    tellAudit(c, `${action}: ${done()}`);
    const { changed, skipped, skippedCount: skipped_count } = outcome;
    return c.json({ changed, skipped, skipped_count });
  });
  return app;
}

/** Jobs of an API need a key for it, as one by one; everything else an admin. */
async function assertMaySelect(
  c: Context,
  { apis, keys }: SelectionDeps,
  api: string | undefined,
): Promise<void> {
  if (api === undefined) return assertKey(c, keys, { scope: "admin" });
  const version = await apis.deployed.findVersion(api);
  if (version === undefined || needsKey(version, keys.isAny)) assertKey(c, keys, { scope: "submit", api });
  else letAnybodyIn(c, keys, () => needsKey(version, keys.isAny));
}

/** Whoever may select something may know that a selection is gone. */
function assertMayAct(c: Context, { keys }: SelectionDeps): void {
  const { scope } = callerOf(c, keys);
  if (!keys.isAny || scope?.split(" ").some((each) => /^submit(:|$)/.test(each))) return;
  assertKey(c, keys, { scope: "admin" });
}

/** The API that a selection names, before the rest of it is checked. */
function apiNamed(asked: unknown): string | undefined {
  const { jobs } = (asked ?? {}) as { jobs?: { api?: unknown } };
  return typeof jobs?.api === "string" ? jobs.api : undefined;
}

function parsed(asked: unknown): {
  jobs?: JobSelection | undefined;
  messages?: MessageSelection | undefined;
} {
  const result = selectionSchema.safeParse(asked);
  if (result.success) return result.data;
  const { details } = firstErrors(result.error.issues, asked, ([part]) => SELECTION_KEYS[String(part)] ?? []);
  const [{ pointer, detail }] = details.fields as [{ pointer: string; detail: string }];
  throw new ServiceError(
    "invalid_request",
    `the selection is not valid: ${pointer || "it"}: ${detail}`,
    details,
  );
}

async function selectedBy(
  deps: SelectionDeps,
  { jobs, messages }: ReturnType<typeof parsed>,
): Promise<Selected> {
  if (jobs !== undefined) {
    const ids = jobs.ids === undefined ? await found(deps, jobs) : await named(deps, jobs);
    return { kind: "jobs", ids: fewEnough(ids, SELECTED_JOBS_MAX, "jobs"), api: jobs.api };
  }
  const { queue, search, ids: given } = messages!;
  const { queues } = deps;
  const ids =
    given === undefined
      ? await queues.ids(queue, search || undefined, SELECTED_MESSAGES_MAX)
      : (await queues.heads(queue, given)).map(({ message_id }) => message_id);
  return { kind: "messages", ids: fewEnough(ids, SELECTED_MESSAGES_MAX, "messages"), queue };
}

function found({ jobs }: SelectionDeps, asked: JobSelection): Promise<string[] | undefined> {
  const { api, status, search, created_after, created_before } = asked;
  const time = (name: string, text: string | undefined) =>
    text === undefined ? undefined : timeNamed(name, text);
  const filter: JobFilter = {
    ...{ api, statuses: status, search },
    createdAfterMs: time("created_after", created_after),
    createdBeforeMs: time("created_before", created_before),
  };
  return jobs.found.ids(filter, SELECTED_JOBS_MAX);
}

async function named({ jobs }: SelectionDeps, { api, ids }: JobSelection): Promise<string[]> {
  const rows = await jobs.found.byIds([...new Set(ids)]);
  return rows.filter(({ api_name }) => api === undefined || api_name === api).map(({ job_id }) => job_id);
}

function fewEnough(ids: string[] | undefined, most: number, what: string): string[] {
  if (ids !== undefined) return ids;
  throw new ServiceError(
    "invalid_request",
    `more than ${most} ${what} match, which is the most that a selection has; select fewer`,
  );
}

async function act(
  c: Context,
  deps: SelectionDeps,
  { kind, ids, queue: name, action }: Selected & { action: string },
  outcome: Outcome,
): Promise<void> {
  const caller: Caller = {
    mayGoOn: () => assertStillOpen(c),
    mayRepeat: (job) => assertMayRepeat(c, deps, job),
    by: doneBy(c, deps.keys),
  };
  const queue = name!;
  if (kind === "jobs" && (JOB_ACTIONS as readonly string[]).includes(action))
    return actOnJobs(deps.jobs, { ids, action: action as JobAction }, caller, outcome);
  if (kind === "messages" && action === "redrive")
    return redriveMessages(deps, { queue, ids }, caller, outcome);
  if (kind === "messages" && action === "remove")
    return removeMessages(deps.queues, { queue, ids }, caller, outcome);
  const legal = kind === "jobs" ? JOB_ACTIONS.join(", ") : "redrive, remove";
  throw new ServiceError(
    "invalid_request",
    `an action on ${kind} is one of ${legal} (got "${action.slice(0, 40)}")`,
  );
}
