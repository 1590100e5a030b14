/**
 * `/-/apis/{name}/versions`: the versions of an API with their configurations and files, to see what changed.
 * `/-/apis/{name}/changes`: when which of them was deployed, and by whom.
 */
import { createHmac, randomBytes } from "node:crypto";
import { type Context, Hono } from "hono";
import type { Keys } from "../../access/keys.ts";
import type { Apis } from "../../apis/apis.ts";
import type { ListedFile, ProjectLists } from "../../apis/projects/project-lists.ts";
import { stringifyWithRaw } from "../../base/json/exact.ts";
import type { ApiChanges } from "../../contracts/http/session-operations.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { type ChangeRow, keptChanges } from "../../series/change-rows.ts";
import type { SeriesDeps } from "../../series/read-series.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import type { ShownConfig } from "../answers/shown-config.ts";
import { isAdmin } from "../requests/authorization.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";

export interface VersionRoutesDeps {
  apis: Apis;
  keys: Keys;
  lists: OpenStreams;
  shown: ShownConfig;
  projectLists: ProjectLists;
  series: SeriesDeps;
  reads: ReadsInTurn;
}

/** Callers that may not read files get hashes with this key: else they could try out what a short file contains. */
const BLIND = randomBytes(32);
/** Their hashes take a millisecond. A project may have 100,000 files. */
const FILES_OF_A_CHUNK = 200;

export function versionRoutes(deps: VersionRoutesDeps): Hono {
  const app = new Hono();
  app.get("/-/apis/:name/versions", async (c) => {
    const { api_id } = await deps.apis.deployed.get(c.req.param("name"));
    return jsonChunks(c, deps.lists, versions(c, deps, c.req.param("name"), api_id));
  });
  app.get("/-/apis/:name/changes", (c) =>
    deps.reads.take(c, async () => {
      const { name } = await deps.apis.deployed.get(c.req.param("name"));
      const rows = await keptChanges(deps.series.db, name);
      return c.json({ changes: rows.map(shownChange) } satisfies ApiChanges);
    }),
  );
  return app;
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
