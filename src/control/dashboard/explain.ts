/** `GET /-/apis/NAME/explain` and `GET /API/JOB/explain`: why something is slow, stuck or failing. */
import { type Context, Hono } from "hono";
import { wallMs } from "../../base/clock.ts";
import type { Explanation, Finding } from "../../contracts/http/explain-operations.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { explainApi } from "../../explain/api/explain-api.ts";
import { explainJob } from "../../explain/job/explain-job.ts";
import { explainPast } from "../../explain/past/explain-past.ts";
import { apiFacts, knownFacts } from "../explain/api-facts.ts";
import type { ExplainDeps } from "../explain/explain-deps.ts";
import { jobFacts } from "../explain/job-facts.ts";
import { pastFacts } from "../explain/past-facts.ts";
import { API } from "../jobs/job-rounds.ts";
import { batchApi, jobIdOf } from "../jobs/jobs.ts";
import { assertKey } from "../requests/authorization.ts";

export function explainRoutes(deps: ExplainDeps): Hono {
  const app = new Hono();
  app.get("/-/apis/:name/explain", (c) => {
    const name = c.req.param("name");
    const at = c.req.query("at");
    const explain = async () =>
      at === undefined
        ? explainApi(await apiFacts(deps, name))
        : explainPast(await pastFacts(deps, name, at, wallMs() / 1000));
    return respond(c, deps, explain, { api_name: name, job_id: null });
  });
  app.get(`${API}/:job/explain`, (c) => {
    const { api, job } = c.req.param() as { api: string; job: string };
    return respond(c, deps, () => explainedJob(c, deps), { api_name: api, job_id: job });
  });
  return app;
}

async function explainedJob(c: Context, deps: ExplainDeps): Promise<Explanation> {
  const { name } = await batchApi(c, deps, "read");
  const row = await deps.jobs.records.get(name, jobIdOf(c, name));
  const mayNameOthers = deps.shown.mayNameOthers(c);
  return explainJob(await jobFacts(deps, row, { mayNameOthers, countsFailures: true }));
}

/** Without its database the server still knows that this is what is wrong, and what its replicas do. */
async function respond(
  c: Context,
  deps: ExplainDeps,
  explain: () => Promise<Explanation>,
  about: Pick<Explanation, "api_name" | "job_id">,
): Promise<Response> {
  return deps.reads.take(c, async () => {
    try {
      if (deps.databaseFault() === undefined) return c.json(shown(await explain()));
    } catch (error) {
      if (deps.databaseFault() === undefined) throw error;
    }
    assertKey(c, deps.keys, { scope: "view" });
    const known = explainApi(await knownFacts(deps, about.api_name));
    return c.json(shown({ ...known, ...about }));
  });
}

/** Exceptions and store errors may have addresses with secrets. */
function shown({ findings, summary, ...about }: Explanation): Explanation {
  return { ...about, summary: hideInText(summary), findings: findings.map(shownFinding) };
}

function shownFinding({ title, evidence, command, ...rest }: Finding): Finding {
  const hidden = { title: hideInText(title), evidence: evidence.map((line) => hideInText(line)) };
  return { ...rest, ...hidden, command: command === null ? null : hideInText(command) };
}
