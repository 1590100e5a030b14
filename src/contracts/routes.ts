/**
 * The route snapshot: all that a gateway knows. The controller writes it to a file and streams each new version;
 * a gateway starts from the file and serves while there is no controller
 * (docs/contract/operations.md#predictions-without-a-controller).
 */
import * as z from "zod";
import { KEY_SCOPES } from "./keys.ts";

const replicaSchema = z.object({
  worker_id: z.string(),
  socket: z.string(),
  token: z.string(),
  pid: z.int(),
  process_start: z.string(),
  note: z.string(),
});
export type ReplicaRoute = z.infer<typeof replicaSchema>;

/** Where an API is, and who may come. */
const addressSchema = z.object({
  name: z.string(),
  /** A path, without a slash at its end. */
  endpoint: z.string(),
  /**
   * `networking.api_gateway`: false is for loopback and the control listener only
   * (docs/contract/addresses.md#api-gateway-none).
   */
  is_public: z.boolean(),
  /** Web pages of these origins may read the answers; `*` is any; null where the configuration says nothing. */
  cors_origins: z.array(z.string()).nullable(),
  /** Whether it needs a key with the scope `predict`. */
  needs_key: z.boolean(),
});
export type AddressRoute = z.infer<typeof addressSchema>;

const splitterRouteSchema = addressSchema.extend({
  apis: z.array(z.object({ name: z.string(), weight: z.int(), shadow: z.boolean() })),
});
export type SplitterRoute = z.infer<typeof splitterRouteSchema>;

const apiRouteSchema = addressSchema.extend({
  kind: z.enum(["RealtimeAPI", "BatchAPI"]),
  api_id: z.string(),
  /** Why no replica can serve, for the 503's message. */
  status: z.string(),
  timeout_ms: z.int(),
  /** Requests in all that may wait or run; past it 503. */
  capacity: z.int(),
  /** How many requests one worker runs at once, or wants at once where it makes batches of them. */
  parallel: z.int(),
  /** A request past its time is ended by the death of its worker only: a plain `predict` in a single thread. */
  is_blocking: z.boolean(),
  /** `min_replicas: 0`: requests wait for the first replica. */
  can_sleep: z.boolean(),
  /** `predictor.expose_errors`. */
  expose_errors: z.boolean(),
  /** The names among `query_params`, `headers` that the predictor declares: only those are sent. */
  wants: z.array(z.string()),
  /** `predictor.pass_credentials`. */
  pass_credentials: z.boolean().default(false),
  replicas: z.array(replicaSchema),
});
export type ApiRoute = z.infer<typeof apiRouteSchema>;

const keyRouteSchema = z.object({
  id: z.string(),
  sha256: z.string(),
  scope: z.enum(KEY_SCOPES),
  api: z.string().nullable(),
  created_time: z.string(),
  rate: z.object({ requests: z.int(), seconds: z.int() }).nullable(),
  expires_time: z.string().nullable(),
  revoked_time: z.string().nullable(),
});

/** What lets user code in that calls other APIs: the hash of a capability, and the API whose workers have it. */
const capabilityRouteSchema = z.object({ sha256: z.string(), api: z.string() });
export type CapabilityRoute = z.infer<typeof capabilityRouteSchema>;

/** Which snapshot it is: two fields, so that no number of publishes in one epoch reaches into the next one's. */
const stampSchema = z.object({
  /** The controller's. Files of releases before this field have none, and are older than any. */
  epoch: z.int().default(0),
  version: z.int(),
});
export type SnapshotStamp = z.infer<typeof stampSchema>;

/** The items are read one by one: one that cannot be read costs no other its place. */
const envelopeSchema = stampSchema.extend({
  apis: z.array(z.unknown()),
  splitters: z.array(z.unknown()),
  keys: z.array(z.unknown()),
  /** Files of releases before this field have none. */
  capabilities: z.array(z.unknown()).default([]),
});

export interface RouteSnapshot extends SnapshotStamp {
  apis: ApiRoute[];
  splitters: SplitterRoute[];
  keys: z.infer<typeof keyRouteSchema>[];
  capabilities: CapabilityRoute[];
}

export const NO_ROUTES: RouteSnapshot = {
  epoch: -1,
  version: -1,
  apis: [],
  splitters: [],
  keys: [],
  capabilities: [],
};

/** The admin token is always among the keys. */
const ONLY_ADMIN = 1;

/** A part of a snapshot that could not be read. */
const refusedRouteSchema = z.object({ name: z.string(), detail: z.string() });
export type RefusedRoute = z.infer<typeof refusedRouteSchema>;

/** What a gateway says once it acts by a snapshot. */
export const appliedSchema = stampSchema.extend({
  gateway: z.string(),
  refused: z.array(refusedRouteSchema),
});

export function isNewer(one: SnapshotStamp, other: SnapshotStamp): boolean {
  return one.epoch === other.epoch ? one.version > other.version : one.epoch > other.epoch;
}

/**
 * Reads a snapshot item by item. An API that cannot be read keeps its route of `before`, as do those of `missing`; a key that
 * cannot be read opens nothing. Throws if it is no snapshot at all.
 */
export function readSnapshot(
  value: unknown,
  before: RouteSnapshot,
  missing: readonly RefusedRoute[] = [],
): { snapshot: RouteSnapshot; refused: RefusedRoute[] } {
  const envelope = envelopeSchema.safeParse(value);
  if (!envelope.success) throw new Error(faultOf(envelope.error));
  const { epoch, version, ...lists } = envelope.data;
  const refused: RefusedRoute[] = [...missing];
  const apis = readItems(apiRouteSchema, lists.apis, refused);
  const splitters = readItems(splitterRouteSchema, lists.splitters, refused);
  const isRefused = ({ name }: AddressRoute) => refused.some((item) => item.name === name);
  // Whether a route that is kept was open by its own word, or for want of any key, it does not say: the first key closes it.
  const isFirstKey = lists.keys.length > ONLY_ADMIN && before.keys.length <= ONLY_ADMIN;
  const keptOf = <Route extends AddressRoute>(routes: readonly Route[]) =>
    routes.filter(isRefused).map((route) => (isFirstKey ? { ...route, needs_key: true } : route));
  // What is kept goes first: an address that is another API's by now is the other's.
  const snapshot = {
    epoch,
    version,
    apis: [...keptOf(before.apis), ...apis],
    splitters: [...keptOf(before.splitters), ...splitters],
    keys: readItems(keyRouteSchema, lists.keys, refused),
    capabilities: readItems(capabilityRouteSchema, lists.capabilities, refused),
  };
  return { snapshot, refused };
}

function readItems<Item>(
  schema: z.ZodType<Item>,
  items: readonly unknown[],
  refused: RefusedRoute[],
): Item[] {
  return items.flatMap((item) => {
    const read = schema.safeParse(item);
    if (read.success) return [read.data];
    const { name, id } = (item ?? {}) as { name?: unknown; id?: unknown };
    refused.push({ name: String(name ?? id), detail: faultOf(read.error) });
    return [];
  });
}

function faultOf({ issues: [issue] }: z.ZodError): string {
  return `${issue!.path.join(".")}: ${issue!.message}`;
}
