/**
 * The graph of an application's resources: their ids, what each is made from, and how it is computed. Equal definitions
 * have equal ids, so they are computed once.
 */
import type { NodeKind } from "../../contracts/config/applications.ts";
import type { Located } from "./load-app.ts";

export interface Node<Kind extends NodeKind | "environment"> {
  kind: Kind;
  name: string;
  id: string;
  /** The ids of the resources that it is made from. */
  dependsOn: readonly string[];
}
type Made<Kind extends "raw_column" | "aggregate" | "transformed_column" | "model" | "api"> = Node<Kind> & {
  resource: Located<Kind>["resource"];
};

/** An aggregator or a transformer: one that comes with Quern, or a file of the project. */
export type Code = { built_in: string } | { path: string };
/** A given arg: the value of an aggregate, or a literal value. */
export type Arg = { aggregate: string } | { value: unknown };
/** Columns by input, args by name, and the code that takes them. */
export interface Call {
  code: Code;
  columns: Readonly<Record<string, string | readonly string[]>>;
  args: Readonly<Record<string, Arg>>;
}

export interface ResourceGraph {
  app: string;
  environment: Node<"environment"> & { resource: Located<"environment">["resource"]; version: string };
  raw_columns: readonly Made<"raw_column">[];
  aggregates: readonly (Made<"aggregate"> & { call: Call })[];
  transformed_columns: readonly (Made<"transformed_column"> & { call: Call; output_type: string })[];
  training_datasets: readonly (Node<"training_dataset"> & {
    ratio: readonly [number, number];
    columns: readonly string[];
  })[];
  models: readonly (Made<"model"> & { path: string; dataset: string; aggregates: Record<string, string> })[];
  apis: readonly (Made<"api"> & { model: string })[];
}

/** All resources that have a status, in the order in which they are computed. */
export function nodesOf(graph: ResourceGraph): Node<NodeKind>[] {
  return [
    ...graph.raw_columns,
    ...graph.aggregates,
    ...graph.transformed_columns,
    ...graph.training_datasets,
    ...graph.models,
    ...graph.apis,
  ];
}
