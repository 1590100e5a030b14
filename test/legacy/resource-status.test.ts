/** The statuses of an application's resources, each from its own state and that of its inputs. */
import { describe, expect, it } from "vitest";
import type { ResourceStatus, ServedApi } from "../../src/contracts/config/applications.ts";
import type { ArtifactState } from "../../src/legacy/artifacts.ts";
import type { ResourceGraph } from "../../src/legacy/check/resource-graph.ts";
import { statusesOf } from "../../src/legacy/resource-status.ts";

/** environment ← column ← mean ← normalized ← set ← model ← api; mean ← model; and another column. */
const CHAIN = ["column", "mean", "normalized", "set", "model", "api"] as const;
const node = (kind: string, name: string, dependsOn: string[]) => ({ kind, name, id: name, dependsOn });
const GRAPH = {
  raw_columns: [node("raw_column", "column", ["environment"]), node("raw_column", "other", ["environment"])],
  aggregates: [node("aggregate", "mean", ["column"])],
  transformed_columns: [node("transformed_column", "normalized", ["column", "mean"])],
  training_datasets: [node("training_dataset", "set", ["normalized"])],
  models: [node("model", "model", ["set", "mean"])],
  apis: [node("api", "api", ["model"])],
} as unknown as ResourceGraph;

type States = Partial<Record<(typeof CHAIN)[number] | "other", ArtifactState["state"]>>;
type Api = Partial<ServedApi>;

function statuses(states: States, given: { working?: boolean; waiting?: string; api?: Api } = {}) {
  const known = Object.entries(states).map(([id, state]) => [id, { state, started_time: "" }] as const);
  const served = given.api === undefined ? [] : [["api", given.api as ServedApi] as const];
  const work = { isWorking: given.working ?? false, waiting: given.waiting };
  const found = statusesOf(GRAPH, new Map(known), work, new Map(served));
  return [...CHAIN, "other"].map((id) => found.get(id)!);
}

const DONE: States = {
  ...{ column: "succeeded", other: "succeeded", mean: "succeeded", normalized: "succeeded" },
  ...{ set: "succeeded", model: "succeeded" },
};
const serving = (status: ServedApi["status"], is_current = true, up_to_date_replicas = 1): Api => ({
  ...{ status, is_current, up_to_date_replicas },
});

const READY = "ready";
const SKIPPED = "skipped";
const CASES: [string, Parameters<typeof statuses>, ResourceStatus[]][] = [
  [
    "nothing has begun",
    [{}, { working: true }],
    ["pending", "pending", "pending", "pending", "pending", "pending", "pending"],
  ],
  [
    "nothing has begun, and no stage runs",
    [{}],
    ["pending", "pending", "pending", "pending", "pending", "pending", "pending"],
  ],
  [
    "a column failed, and other stages still run",
    [{ column: "failed", other: "running" }, { working: true }],
    ["error", "pending", "pending", "pending", "pending", "pending", "ingesting"],
  ],
  [
    "data is ingested",
    [{ column: "running", other: "running" }, { working: true }],
    ["ingesting", "pending", "pending", "pending", "pending", "pending", "ingesting"],
  ],
  [
    "each kind of resource runs under its own name",
    [
      { ...DONE, mean: "running", normalized: "running", set: "running", model: "running" },
      { working: true },
    ],
    [READY, "aggregating", "transforming", "generating", "training", "pending", READY],
  ],
  [
    "a column was invalid: the rest of the data was skipped",
    [{ column: "failed" }],
    ["error", SKIPPED, SKIPPED, SKIPPED, "upstream error", "upstream error", SKIPPED],
  ],
  [
    "an aggregate failed, and the columns had been validated",
    [{ column: "succeeded", other: "succeeded", mean: "failed" }],
    [READY, "error", SKIPPED, SKIPPED, "upstream error", "upstream error", READY],
  ],
  [
    "the training data could not be generated",
    [{ ...DONE, set: "failed", model: undefined }],
    [READY, READY, READY, "error", "upstream error", "upstream error", READY],
  ],
  [
    "the training failed, with nothing served",
    [{ ...DONE, model: "failed" }],
    [READY, READY, READY, READY, "error", "upstream error", READY],
  ],
  [
    "the training failed, and the previous model keeps serving",
    [{ ...DONE, model: "failed" }, { api: serving("live", false) }],
    [READY, READY, READY, READY, "error", "update skipped", READY],
  ],
  [
    "a new model is trained, and the previous one serves",
    [
      { ...DONE, model: "running" },
      { working: true, api: serving("live", false) },
    ],
    [READY, READY, READY, READY, "training", "update pending", READY],
  ],
  [
    "the deployment was stopped in the data",
    [{ column: "succeeded", other: "succeeded", mean: "terminated" }],
    [READY, "terminated", SKIPPED, SKIPPED, "upstream error", "upstream error", READY],
  ],
  [
    "the deployment was stopped while training data was generated",
    [{ ...DONE, set: "terminated", model: undefined }],
    [READY, READY, READY, "terminated", "upstream termination", "upstream termination", READY],
  ],
  [
    "the deployment was stopped in the training",
    [{ ...DONE, model: "terminated" }],
    [READY, READY, READY, READY, "terminated", "upstream termination", READY],
  ],
  [
    "the model waits for compute",
    [
      { ...DONE, model: "running" },
      { working: true, waiting: "model" },
    ],
    [READY, READY, READY, READY, "compute unavailable", "pending", READY],
  ],
  ["everything serves", [DONE, { api: serving("live") }], [READY, READY, READY, READY, READY, READY, READY]],
  [
    "a new model is ready, and the one before still serves",
    [DONE, { api: serving("live", false) }],
    [READY, READY, READY, READY, READY, "updating", READY],
  ],
  [
    "its first replica starts",
    [DONE, { api: serving("updating", true, 0) }],
    [READY, READY, READY, READY, READY, "pending", READY],
  ],
  [
    "some replicas serve",
    [DONE, { api: serving("updating", true, 1) }],
    [READY, READY, READY, READY, READY, "updating", READY],
  ],
  [
    "its replicas cannot start",
    [DONE, { api: serving("error") }],
    [READY, READY, READY, READY, READY, "error", READY],
  ],
  [
    "its replicas have no room",
    [DONE, { api: serving("compute unavailable") }],
    [READY, READY, READY, READY, READY, "compute unavailable", READY],
  ],
];

describe("the statuses of resources", () => {
  it.each(CASES)("are right if %s", (_, given, expected) => {
    expect(statuses(...given)).toEqual(expected);
  });
});
