/**
 * What lists and health checks need of each deployed API. A configuration may have hundreds of KB, and these are asked
 * for often, so it is parsed once per version. Only the outline is kept: a few hundred bytes for each deployed API.
 */
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import type { Database } from "../../database/database.ts";
import { environmentUser } from "../../engine/environments/environment-uses.ts";
import { endpointOf } from "../config/endpoints.ts";
import { type AnyVersion, readDeployed, type UnreadableApi } from "./api-rows.ts";

export interface ApiOutline extends Omit<UnreadableApi, "why"> {
  /** A path. */
  endpoint: string;
  /** Whom its environment is for; a splitter has none. */
  user?: string;
  /** Why its row cannot be read. */
  why?: string;
}

/** A deployment changes both, also one of the same configuration. */
type VersionId = Pick<ApiOutline, "api_id" | "deployed_time">;

interface Known extends VersionId {
  reading: Promise<ApiOutline | undefined>;
  /** What was read. */
  outline?: ApiOutline | undefined;
}

const DEPLOYED = "SELECT name, api_id, deployed_time FROM apis";

export class ApiOutlines {
  private readonly db: Database;
  /** By the name of the API. */
  private readonly known = new Map<string, Known>();
  /** Shared by all callers: many of them at once take no more of the event loop than one. */
  private readonly slices = new TimeSlices(SLICE_MS);

  constructor(db: Database) {
    this.db = db;
  }

  /** Of all deployed APIs, sorted by name. */
  async all(): Promise<ApiOutline[]> {
    const rows = await this.db.all<VersionId & { name: string }>(`${DEPLOYED} ORDER BY name`);
    this.keepOnly(new Set(rows.map(({ name }) => name)));
    const outlines: ApiOutline[] = [];
    for (const row of rows) {
      // Most are known, and this runs each second for all: no turn of the event loop for them.
      const outline = this.knownOf(row.name, row)?.outline ?? (await this.of(row.name, row));
      // It was deleted meanwhile.
      if (outline !== undefined) outlines.push(outline);
      if (this.slices.isOver) await this.slices.rest();
    }
    return outlines;
  }

  /** Undefined if it is not deployed. */
  async find(name: string): Promise<ApiOutline | undefined> {
    const [row] = await this.db.all<VersionId>(`${DEPLOYED} WHERE name = ?`, [name]);
    return row === undefined ? undefined : this.of(name, row);
  }

  private knownOf(name: string, id: VersionId): Known | undefined {
    const known = this.known.get(name);
    return known !== undefined && isSame(known, id) ? known : undefined;
  }

  /** Those that ask at the same time share one reading. */
  private of(name: string, { api_id, deployed_time }: VersionId): Promise<ApiOutline | undefined> {
    const id = { api_id, deployed_time };
    const before = this.knownOf(name, id);
    if (before !== undefined) return before.reading;
    const known: Known = { ...id, reading: this.read(name) };
    this.known.set(name, known);
    const forget = () => {
      if (this.known.get(name) === known) this.known.delete(name);
    };
    known.reading.then((found) => {
      // A newer version may have been deployed meanwhile: it is not kept as this one.
      if (found === undefined || !isSame(found, id)) forget();
      else known.outline = found;
    }, forget);
    return known.reading;
  }

  private async read(name: string): Promise<ApiOutline | undefined> {
    const { versions, unreadable } = await readDeployed(this.db, name);
    const [version] = versions;
    if (version !== undefined) return outlineOf(version);
    const [broken] = unreadable;
    return broken === undefined ? undefined : { ...broken, endpoint: `/${name}` };
  }

  private keepOnly(names: ReadonlySet<string>): void {
    for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
  }
}

export function outlineOf({ name, api_id, deployed_time, project_id, config }: AnyVersion): ApiOutline {
  const user = environmentUser(project_id, config.predictor?.python);
  return { name, kind: config.kind, api_id, deployed_time, endpoint: endpointOf(config), user };
}

function isSame(one: VersionId, other: VersionId): boolean {
  return one.api_id === other.api_id && one.deployed_time === other.deployed_time;
}
