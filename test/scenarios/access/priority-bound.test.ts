/** `--submit-priority-max`: who may run jobs of which priority. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
let submitKey: string;
let adminToken: string;
beforeAll(async () => {
  await server.start({}, ["--submit-priority-max", "5"]);
  server.deploy(project(OBEDIENT), { wait: false });
  submitKey = server.cli(["keys", "create", "--scope", "submit", "--api", "jobs"]).out.trim();
  adminToken = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
});
afterAll(() => server.stop());

const post = async (key: string, path: string, body?: object) => {
  const init = { method: "POST", headers: { authorization: `Bearer ${key}` } };
  const answer = await server.fetch(
    path,
    body === undefined ? init : { ...init, body: JSON.stringify(body) },
  );
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};
const submission = (priority: number) => ({
  ...{ workers: 1, priority },
  item_list: { items: [{ do: "raise" }], batch_size: 1 },
});

describe("a priority above --submit-priority-max", () => {
  it.each(["/jobs", "/jobs?dryRun=true"])(
    "is refused with a submit key at %s, which says who may give it",
    async (path) => {
      expect(await post(submitKey, path, submission(6))).toMatchObject({
        status: 400,
        body: {
          code: "invalid_request",
          message:
            "the submission is not valid: priority must be at most 5 (got 6); only an admin key may give more than this server's --submit-priority-max",
          errors: [{ pointer: "/priority" }],
        },
      });
      expect((await post(submitKey, path, submission(5))).status).toBe(200);
    },
  );

  it("may be given with an admin key; then only such a key may redrive or resume the job", async () => {
    const { body } = await post(adminToken, "/jobs", submission(6));
    const id = body.job_id as string;
    expect(body.priority).toBe(6);
    await eventually("the job has ended", async () => (await status(id)).end_time !== undefined);
    for (const verb of ["redrive", "resume"])
      expect(await post(submitKey, `/jobs/${id}/${verb}`)).toMatchObject({
        status: 400,
        body: {
          message: expect.stringMatching(/has priority 6, .* is 5; only an admin key may run it again$/),
        },
      });
    expect((await post(adminToken, `/jobs/${id}/redrive`)).status).toBe(200);
  });
});

async function status(id: string): Promise<{ end_time?: string }> {
  const answer = await server.fetch(`/jobs/${id}`, { headers: { authorization: `Bearer ${adminToken}` } });
  return ((await answer.json()) as { job_status: { end_time?: string } }).job_status;
}
