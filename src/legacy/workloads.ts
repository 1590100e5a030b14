/** The workloads of an application: its data, or one model. Each is a stage with a log directory of this name. */
import type { NodeKind } from "../contracts/config/applications.ts";

export const DATA = "data";

/** The resources of the data stage. The others are models, each with a separate stage, and APIs. */
export const DATA_KINDS: readonly NodeKind[] = [
  "raw_column",
  "aggregate",
  "transformed_column",
  "training_dataset",
];

export function modelWorkload(model: string): string {
  return `model-${model}`;
}
