/** What the routes of a version say, from what is known of its replicas. */
import { describe, expect, it } from "vitest";
import { toRoute } from "../../src/apis/api-routes.ts";
import type { ApiVersion } from "../../src/apis/records/api-rows.ts";
import type { Replica } from "../../src/apis/replicas/replica.ts";
import { apiSchema } from "../../src/contracts/config/apis.ts";

const config = apiSchema.parse({ name: "a", kind: "RealtimeAPI", predictor: { path: "p.py" } });
const version = { name: "a", api_id: "1", predictor_id: "new", config } as unknown as ApiVersion;
const replica = (predictor_id: string, ...wants: string[]) =>
  ({ identity: {}, isAsync: false, predictor_id, wants }) as unknown as Replica;
const wants = (...replicas: Replica[]) => toRoute(version, { replicas, wanted: 1 }, "live", false).wants;

describe("the arguments that gateways send beside the payload", () => {
  it("are those that the predictors declare", () => {
    expect(wants(replica("new"))).toEqual([]);
    expect(wants(replica("new", "headers"), replica("new", "headers"))).toEqual(["headers"]);
    expect(wants(replica("old", "query_params"), replica("new", "headers"))).toEqual([
      "query_params",
      "headers",
    ]);
  });
});
