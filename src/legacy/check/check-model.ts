/** Checks, purely, a model: its columns, its target, its aggregates, and the numbers of its training. */
import type { Resource } from "../../contracts/config/app-resources.ts";
import type { ResourceFault } from "./load-app.ts";

/** The type of a column whose transformer is unknown: reported there, not twice. */
export const UNKNOWN_TYPE = "";

/** `columns` are the types of all columns by name, and `aggregates` the names of all aggregates. */
export function modelFaults(
  model: Resource<"model">,
  columns: ReadonlyMap<string, string>,
  aggregates: ReadonlySet<string>,
): ResourceFault[] {
  const { feature_columns, training_columns } = model;
  return [
    ...columnFaults("feature_columns", feature_columns, columns),
    ...columnFaults("training_columns", training_columns, columns),
    ...training_columns
      .filter((each) => feature_columns.includes(each))
      .map((column) => ({ path: ["training_columns"], detail: `"${column}" is a feature column already` })),
    ...aggregateFaults(model, aggregates),
    ...targetFaults(model, columns),
    ...trainingFaults(model),
  ];
}

function* columnFaults(
  key: "feature_columns" | "training_columns",
  given: readonly string[],
  columns: ReadonlyMap<string, string>,
): Generator<ResourceFault> {
  for (const [at, column] of given.entries()) {
    if (!columns.has(column)) yield { path: [key, at], detail: `column "${column}" is not defined` };
    if (given.indexOf(column) !== at) yield { path: [key, at], detail: `"${column}" is named twice` };
  }
}

function* aggregateFaults(
  model: Resource<"model">,
  aggregates: ReadonlySet<string>,
): Generator<ResourceFault> {
  for (const [at, aggregate] of model.aggregates.entries())
    if (!aggregates.has(aggregate))
      yield { path: ["aggregates", at], detail: `aggregate "${aggregate}" is not defined` };
}

function* targetFaults(
  { type, target_column: target }: Resource<"model">,
  columns: ReadonlyMap<string, string>,
): Generator<ResourceFault> {
  const path = ["target_column"];
  const column = columns.get(target);
  if (column === undefined) yield { path, detail: `column "${target}" is not defined` };
  if (column === undefined || column === UNKNOWN_TYPE || column === "INT_COLUMN") return;
  if (type === "classification")
    yield {
      path,
      detail: `classification models can only predict integer target values (i.e. {0, 1, ..., num_classes-1}), and "${target}" is a ${column}`,
    };
  if (type === "regression" && column !== "FLOAT_COLUMN")
    yield { path, detail: `regression models can only predict numbers, and "${target}" is a ${column}` };
}

function* trainingFaults(model: Resource<"model">): Generator<ResourceFault> {
  const { data_partition_ratio: ratio, training } = model;
  if ((ratio.training === undefined) !== (ratio.evaluation === undefined))
    yield { path: ["data_partition_ratio"], detail: "give training and evaluation, or neither" };
  for (const key of ["training", "evaluation"] as const)
    if (model[key].num_steps !== undefined && model[key].num_epochs !== undefined)
      yield { path: [key], detail: "give num_steps or num_epochs, not both" };
  if (training.save_checkpoints_secs !== undefined && training.save_checkpoints_steps !== undefined)
    yield {
      path: ["training"],
      detail: "give save_checkpoints_secs or save_checkpoints_steps, not both",
    };
}
