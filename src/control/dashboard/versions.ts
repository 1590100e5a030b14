/**
 * `/-/apis/{name}/versions`: the versions of an API with their configurations and files, to see what changed.
 * `/-/apis/{name}/diff`: which of their lines differ. `/-/apis/{name}/changes`: when which of them was deployed, and by whom.
 */
import { createHmac, randomBytes } from "node:crypto";
import { type Context, Hono } from "hono";
import type { Keys } from "../../access/keys.ts";
import type { Apis } from "../../apis/apis.ts";
import type { ListedFile, ProjectLists } from "../../apis/projects/project-lists.ts";
import { type ComparedProject, diffProjects } from "../../apis/projects/version-diff.ts";
import { stringifyWithRaw } from "../../base/json/exact.ts";
import { quotedBeginning } from "../../base/printable.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { ApiChanges, VersionDiff } from "../../contracts/http/session-operations.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { type ChangeRow, keptChanges } from "../../series/change-rows.ts";
import type { SeriesDeps } from "../../series/read-series.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import type { ShownConfig } from "../answers/shown-config.ts";
import { isAdmin } from "../requests/authorization.ts";
import { type Pass, type ReadsInTurn, STORE_TURN_MAX_MS } from "../requests/reads-in-turn.ts";

export interface VersionRoutesDeps {
  apis: Apis;
  keys: Keys;
  lists: OpenStreams;
  shown: ShownConfig;
  projectLists: ProjectLists;
  dataDir: string;
  series: SeriesDeps;
  reads: ReadsInTurn;
}

/** Callers that may not read files get hashes with this key: else they could try out what a short file contains. */
const BLIND = randomBytes(32);
/** Their hashes take a millisecond. A project may have 100,000 files. */
const FILES_OF_A_CHUNK = 200;

export function versionRoutes(deps: VersionRoutesDeps): Hono {
  const app = new Hono();
  // A project may have to be fetched from a store first.
  app.get("/-/apis/:name/versions", (c) =>
    deps.reads.take(
      c,
      async (pass) => {
        const { api_id } = await deps.apis.deployed.get(c.req.param("name"));
        return jsonChunks(c, deps.lists, versions(c, deps, c.req.param("name"), api_id), pass);
      },
      STORE_TURN_MAX_MS,
    ),
  );
  app.get("/-/apis/:name/changes", (c) =>
    deps.reads.take(c, async () => {
      const { name } = await deps.apis.deployed.get(c.req.param("name"));
      const rows = await keptChanges(deps.series.db, name);
      return c.json({ changes: rows.map(shownChange) } satisfies ApiChanges);
    }),
  );
  app.get("/-/apis/:name/diff", (c) =>
    deps.reads.take(c, async (pass) => c.json(await versionDiff(c, deps, pass)), STORE_TURN_MAX_MS),
  );
  return app;
}

async function versionDiff(c: Context, deps: VersionRoutesDeps, pass: Pass): Promise<VersionDiff> {
  const name = c.req.param("name")!;
  const { deployed } = deps.apis;
  const current = (await deployed.get(name)).api_id;
  const history = (await deployed.history(name)).map(({ api_id }) => api_id);
  const to = c.req.query("to") || current;
  const from = c.req.query("from") || history[history.indexOf(to) + 1];
  const [after, before] = [await compared(deps, name, to), from && (await compared(deps, name, from))];
  const about = { from: from ?? null, to };
  if (after === null || before === null) return { ...about, files: null, files_left_out: 0 };
  const { files, leftOut } = await diffProjects(deps.dataDir, before || undefined, after, pass);
  const mayRead = isAdmin(c, deps.keys);
  const shown = mayRead ? files : files.map((file) => ({ ...file, text: null }));
  return { ...about, files: shown, files_left_out: leftOut };
}

/** Null: its files are not those that were deployed. Throws `invalid_request` if there is no such version. */
async function compared(
  { apis, projectLists }: VersionRoutesDeps,
  name: string,
  apiId: string,
): Promise<ComparedProject | null> {
  const projectId = await apis.deployed.projectOf(name, apiId);
  if (projectId === undefined)
    throw new ServiceError(
      "invalid_request",
      `${name} has no version ${quotedBeginning(apiId)}; \`quern get ${name}\` lists its versions`,
    );
  const files = await projectLists.of(projectId);
  return files === null ? null : { projectId, files };
}

function shownChange({ at_s, kind, times, detail, former, by_id, by_name }: ChangeRow) {
  const isVersion = kind !== "replica_ended";
  return {
    time: new Date(at_s * 1000).toISOString(),
    ...{ kind, api_id: isVersion ? detail : null, former_api_id: former },
    ...{ by: by_id, by_name, times, how: isVersion ? null : hideInText(detail) },
  };
}

async function* versions(
  c: Context,
  { apis: { deployed }, keys, shown, projectLists }: VersionRoutesDeps,
  name: string,
  currentId: string,
): AsyncGenerator<string> {
  let separator = '{"versions":[';
  for (const { api_id, deployed_time } of await deployed.history(name)) {
    const projectId = await deployed.projectOf(name, api_id);
    // It was removed meanwhile.
    if (projectId === undefined) continue;
    const read = async () => (await deployed.configText({ name, api_id }, "spec")) ?? "{}";
    const spec = await shown.ofVersion(c, `${name} ${api_id} ${deployed_time}`, read);
    const version = { api_id, deployed_time, is_current: api_id === currentId };
    yield `${separator}${stringifyWithRaw(version, { spec }).slice(0, -1)},"files":`;
    yield* filesText(await projectLists.of(projectId), isAdmin(c, keys) ? asIs : blinded);
    yield "}";
    separator = ",";
  }
  yield separator === "," ? "]}" : `${separator}]}`;
}

async function* filesText(
  files: readonly ListedFile[] | null,
  show: (file: ListedFile) => ListedFile,
): AsyncGenerator<string> {
  if (files === null) return yield "null";
  yield "[";
  for (let at = 0; at < files.length; at += FILES_OF_A_CHUNK) {
    const shown = JSON.stringify(files.slice(at, at + FILES_OF_A_CHUNK).map(show)).slice(1, -1);
    yield at === 0 ? shown : `,${shown}`;
  }
  yield "]";
}

const asIs = (file: ListedFile) => file;

function blinded({ sha256, ...file }: ListedFile): ListedFile {
  return { ...file, sha256: createHmac("sha256", BLIND).update(sha256).digest("hex") };
}
