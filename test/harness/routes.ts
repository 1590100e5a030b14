/** A route for tests of snapshots. */
import type { ApiRoute } from "../../src/contracts/routes.ts";

export const route = (name: string, more: Partial<ApiRoute> = {}): ApiRoute => ({
  ...{ name, endpoint: `/${name}`, is_public: true, cors_origins: [], needs_key: false },
  ...{ kind: "RealtimeAPI", api_id: "1", status: "live", timeout_ms: 1000, capacity: 8, parallel: 1 },
  ...{ is_blocking: true, can_sleep: false, expose_errors: false, pass_credentials: false },
  ...{ wants: [], replicas: [] },
  ...more,
});
