/**
 * The route snapshot: all that a gateway knows. The controller writes it to a file. A gateway starts from the file, and
 * serves even if there is no controller (docs/contract/operations.md#predictions-without-a-controller). A gateway that
 * connects gets the whole snapshot, then only what changes: an unchanged list is neither sent nor read again.
 */
import * as z from "zod";
import { KEY_SCOPES } from "./keys.ts";

/** Where a worker in a pod listens. `ca`: who issued its certificate, in PEM. */
const replicaAddressSchema = z.object({
  host: z.string(),
  port: z.int(),
  server_name: z.string(),
  ca: z.string(),
});
export type ReplicaAddress = z.infer<typeof replicaAddressSchema>;

const replicaSchema = z.object({
  worker_id: z.string(),
  socket: z.string(),
  token: z.string(),
  pid: z.int(),
  process_start: z.string(),
  note: z.string(),
  /** Instead of `socket`, for a worker in a pod. There is no note then. */
  address: replicaAddressSchema.optional(),
});
export type ReplicaRoute = z.infer<typeof replicaSchema>;

/** The address of an API, and who may call it. */
const addressSchema = z.object({
  name: z.string(),
  /** A path without a trailing slash. */
  endpoint: z.string(),
  /**
   * `networking.api_gateway`: false is for loopback and the control listener only
   * (docs/contract/addresses.md#api-gateway-none).
   */
  is_public: z.boolean(),
  /** Web pages of these origins may read the responses; `*` is any origin; null if the configuration does not say. */
  cors_origins: z.array(z.string()).nullable(),
  /** Whether it needs a key with the scope `predict`. */
  needs_key: z.boolean(),
});
export type AddressRoute = z.infer<typeof addressSchema>;

export const splitterRouteSchema = addressSchema.extend({
  apis: z.array(z.object({ name: z.string(), weight: z.int(), shadow: z.boolean() })),
});
export type SplitterRoute = z.infer<typeof splitterRouteSchema>;

export const apiRouteSchema = addressSchema.extend({
  kind: z.enum(["RealtimeAPI", "BatchAPI"]),
  api_id: z.string(),
  /** The reason why no replica can serve, for the message of the 503. */
  status: z.string(),
  timeout_ms: z.int(),
  /** The limit of requests that wait or run; further ones get 503. */
  capacity: z.int(),
  /** How many requests one worker can use at once: those that it runs, or those that it collects into batches. */
  parallel: z.int(),
  /** Only the death of the worker ends a request past its deadline: a plain `predict` in a single thread. */
  is_blocking: z.boolean(),
  /** `min_replicas: 0`: requests wait for the first replica. */
  can_sleep: z.boolean(),
  /** `predictor.expose_errors`. */
  expose_errors: z.boolean(),
  /** The names among `query_params` and `headers` that the predictors of the replicas declare. Only those are sent. */
  wants: z.array(z.string()),
  /** `predictor.pass_credentials`. */
  pass_credentials: z.boolean().default(false),
  replicas: z.array(replicaSchema),
});
export type ApiRoute = z.infer<typeof apiRouteSchema>;

export const keyRouteSchema = z.object({
  id: z.string(),
  sha256: z.string(),
  scope: z.enum(KEY_SCOPES),
  api: z.string().nullable(),
  created_time: z.string(),
  rate: z.object({ requests: z.int(), seconds: z.int() }).nullable(),
  expires_time: z.string().nullable(),
  revoked_time: z.string().nullable(),
  /** For a session of a browser: the id of its key. */
  session_of: z.string().optional(),
});

export type KeyRoute = z.infer<typeof keyRouteSchema>;

/** What permits user code to call other APIs: the hash of a capability, and the API whose workers have it. */
export const capabilityRouteSchema = z.object({ sha256: z.string(), api: z.string() });
export type CapabilityRoute = z.infer<typeof capabilityRouteSchema>;

/** Identifies a snapshot. It has two fields, so that the versions of one epoch never reach those of the next. */
export const stampSchema = z.object({
  /** The controller's epoch. Files from before this field existed have none, and are older than any other. */
  epoch: z.int().default(0),
  version: z.int(),
});
export type SnapshotStamp = z.infer<typeof stampSchema>;

/** The items are read one by one, so that one unreadable item does not affect the others. */
const itemsSchema = z.array(z.unknown());
const routesSchema = z.object({ apis: itemsSchema, splitters: itemsSchema });

export const snapshotSchema = stampSchema.extend({
  ...routesSchema.shape,
  keys: itemsSchema,
  /** Files from before this field existed have none. */
  has_keys: z.boolean().optional(),
  /** Files from before this field existed have none. */
  capabilities: itemsSchema.default([]),
});

export const changeSchema = stampSchema.extend({
  /** The version of the same epoch that this changes. A list that the change lacks stays the same. */
  since: z.int(),
  has_keys: z.boolean(),
  routes: routesSchema.optional(),
  /** The ids of keys that open nothing any more, and keys that are new or have changed. */
  keys: z.object({ gone: z.array(z.string()), put: itemsSchema }).optional(),
  capabilities: itemsSchema.optional(),
});
export type RouteChange = z.infer<typeof changeSchema>;

export interface RouteSnapshot extends SnapshotStamp {
  apis: ApiRoute[];
  splitters: SplitterRoute[];
  /** The keys that open something, and the admin token. */
  keys: KeyRoute[];
  /** Whether any key was ever made. Keys that are revoked or expired are not in `keys`. */
  has_keys: boolean;
  capabilities: CapabilityRoute[];
}

export const NO_ROUTES: RouteSnapshot = {
  epoch: -1,
  version: -1,
  apis: [],
  splitters: [],
  keys: [],
  has_keys: false,
  capabilities: [],
};

/** An item of a snapshot that could not be read. */
const refusedRouteSchema = z.object({ name: z.string(), detail: z.string() });
export type RefusedRoute = z.infer<typeof refusedRouteSchema>;

/** What a gateway reports once it has applied a snapshot. */
export const appliedSchema = stampSchema.extend({
  gateway: z.string(),
  refused: z.array(refusedRouteSchema),
});

export function isNewer(one: SnapshotStamp, other: SnapshotStamp): boolean {
  return one.epoch === other.epoch ? one.version > other.version : one.epoch > other.epoch;
}
