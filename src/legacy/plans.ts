/** Builds the plan for a stage's process (python/quern_application/__main__.py), purely. */
import type { ResourceGraph } from "./check/resource-graph.ts";

/** Absolute paths. */
export interface Places {
  project: string;
  artifacts: string;
  /** A file that is touched every few seconds while a controller waits for the stage. */
  alive: string;
}

/** `files`: the data on this machine; empty if it was ingested before. */
export function dataPlan(graph: ResourceGraph, places: Places, files: readonly string[]): object {
  const { environment, app } = graph;
  const { data, limit } = environment.resource;
  return {
    stage: "data",
    ...places,
    environment: {
      ...{ id: environment.id, app, path: data.path, version: environment.version, files },
      ...{ type: data.type, drop_null: data.drop_null, limit },
      csv_config: data.type === "csv" ? (data.csv_config ?? {}) : {},
      columns: ingestedColumns(graph),
    },
    raw_columns: graph.raw_columns.map(({ id, resource }) => ({ ...resource, id })),
    aggregates: graph.aggregates.map(({ id, name, call: { code, columns, args } }) => ({
      ...{ id, name, aggregator: code, columns, args },
    })),
    transformed_columns: transformed(graph),
    training_datasets: graph.training_datasets,
  };
}

/** The names of the data's columns, in their order, with the raw columns that they become. */
function ingestedColumns({ environment, raw_columns }: ResourceGraph): object[] {
  const types = rawTypes({ raw_columns });
  return environment.resource.data.schema.map((column) => {
    const isRenamed = typeof column !== "string";
    const name = isRenamed ? column.raw_column_name : column;
    return { name, source: isRenamed ? column.parquet_column_name : column, type: types[name] };
  });
}

/** `servingProject`: the directory for the trained model's project. */
export function trainPlan(
  graph: ResourceGraph,
  places: Places,
  model: ResourceGraph["models"][number],
  servingProject: string,
): object {
  const { resource } = model;
  const { target_column: target, feature_columns: features, training_columns } = resource;
  const used = new Set([...features, ...training_columns, target]);
  const types = columnTypes(graph);
  return {
    stage: "train",
    ...places,
    serving_project: servingProject,
    log_level: graph.environment.resource.log_level?.tensorflow ?? "INFO",
    model: {
      ...{ id: model.id, name: model.name, path: model.path, dataset: model.dataset },
      ...{ type: resource.type, prediction_key: resource.prediction_key, aggregates: model.aggregates },
      ...{ target, features, training_columns },
      column_types: Object.fromEntries([...used].map((name) => [name, types[name]])),
      raw_types: rawTypes(graph),
      transformed: transformed(graph).filter(({ name }) => used.has(name)),
      config: modelConfig(graph, model),
    },
  };
}

function transformed({ transformed_columns }: Pick<ResourceGraph, "transformed_columns">) {
  return transformed_columns.map(({ id, name, call, output_type }) => {
    const { code: transformer, columns, args } = call;
    return { id, name, transformer, columns, args, output_type };
  });
}

function rawTypes({ raw_columns }: Pick<ResourceGraph, "raw_columns">): Record<string, string> {
  return Object.fromEntries(raw_columns.map(({ name, resource }) => [name, resource.type]));
}

function columnTypes(graph: ResourceGraph): Record<string, string> {
  const made = graph.transformed_columns.map(({ name, output_type }) => [name, output_type]);
  return { ...rawTypes(graph), ...Object.fromEntries(made) };
}

/**
 * The model_config of create_estimator(), without the values of aggregates. Columns are replaced by their whole
 * configuration.
 */
function modelConfig(
  graph: ResourceGraph,
  { name, path, resource }: ResourceGraph["models"][number],
): object {
  const columns = new Map<string, object>([
    ...graph.raw_columns.map(({ name: column, resource: raw }) => [column, raw] as const),
    ...graph.transformed_columns.map(
      ({ name: column, resource: made, output_type }) => [column, { ...made, type: output_type }] as const,
    ),
  ]);
  const expand = (column: string) => columns.get(column);
  const { target_column, feature_columns, training_columns, ...rest } = resource;
  return {
    ...rest,
    ...{ name, path, target_column: expand(target_column) },
    feature_columns: feature_columns.map(expand),
    training_columns: training_columns.map(expand),
  };
}

/**
 * The fields of a sample for an API, with the types of their columns: the raw columns from which the model's features
 * are made.
 */
export function sampleFields(graph: ResourceGraph, api: string): Record<string, string> {
  const { model: modelId } = graph.apis.find(({ name }) => name === api)!;
  const model = graph.models.find(({ id }) => id === modelId)!;
  const types = rawTypes(graph);
  const behind = model.resource.feature_columns.flatMap((feature) => {
    const made = graph.transformed_columns.find(({ name }) => name === feature);
    return made === undefined ? [feature] : Object.values(made.call.columns).flat();
  });
  return Object.fromEntries(behind.map((name) => [name, types[name]!]));
}
