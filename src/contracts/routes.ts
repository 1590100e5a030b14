/**
 * The route snapshot: all that a gateway knows. The controller writes it to a file and streams each new version;
 * a gateway starts from the file and serves while there is no controller (house, section 1).
 */
import { z } from "zod";
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
  /** `networking.api_gateway`: false is for loopback and the control listener only (decision 9.7). */
  is_public: z.boolean(),
  /** Web pages of these origins may read the answers; `*` is any. */
  cors_origins: z.array(z.string()),
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
  /** The names among `query_params`, `headers` that `predict` declares: only those are sent. */
  wants: z.array(z.string()),
  replicas: z.array(replicaSchema),
});
export type ApiRoute = z.infer<typeof apiRouteSchema>;

export const routeSnapshotSchema = z.object({
  version: z.int(),
  apis: z.array(apiRouteSchema),
  splitters: z.array(splitterRouteSchema),
  keys: z.array(
    z.object({
      id: z.string(),
      sha256: z.string(),
      scope: z.enum(KEY_SCOPES),
      api: z.string().nullable(),
      created_time: z.string(),
      rate: z.object({ requests: z.int(), seconds: z.int() }).nullable(),
      expires_time: z.string().nullable(),
      revoked_time: z.string().nullable(),
    }),
  ),
});
export type RouteSnapshot = z.infer<typeof routeSnapshotSchema>;
