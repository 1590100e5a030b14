/**
 * Builds the graph of an application's resources, purely. The id of each covers all that its value depends on
 * (docs/contract/applications.md#resource-ids). A resource is not computed again if its id was computed before. Names
 * enter an id only if they affect the value, so equal definitions are computed once.
 */
import { ServiceError } from "../../contracts/errors.ts";
import { AGGREGATORS, builtInName, TRANSFORMERS } from "./built-ins.ts";
import { givenTo, isQuoted } from "./check-inputs.ts";
import { contentId } from "./content-id.ts";
import { type Application, type Located, ofKind } from "./load-app.ts";
import { isOwnPath } from "./own-path.ts";
import type { Arg, Call, Code, ResourceGraph } from "./resource-graph.ts";

export interface GraphInputs {
  /** Name of the environment. */
  environment: string;
  /** Version of the data; it changes with each refresh. */
  version: string;
  /** The text of the project's requirements.txt. */
  requirements: string;
  /** A hash of a file of the project. */
  hashOf: (path: string) => string;
}

/** Throws `invalid_request` if there is no such environment. */
export function buildGraph(application: Application, inputs: GraphInputs): ResourceGraph {
  return new GraphBuilder(application, inputs).build();
}

/** The shares of training and evaluation if the model gives none. */
const RATIO = { training: 0.8, evaluation: 0.2 };

class GraphBuilder {
  private readonly application: Application;
  private readonly inputs: GraphInputs;
  /** By name. All columns share one set of names; so do constants and aggregates. */
  private readonly columnIds = new Map<string, string>();
  private readonly columnTags = new Map<string, unknown>();
  private readonly aggregateIds = new Map<string, string>();
  private readonly constants: ReadonlyMap<string, unknown>;

  constructor(application: Application, inputs: GraphInputs) {
    this.application = application;
    this.inputs = inputs;
    this.constants = new Map(this.all("constant").map(({ name, value }) => [name, value]));
  }

  build(): ResourceGraph {
    const environment = this.environment();
    const raw_columns = this.all("raw_column").map((column) => this.rawColumn(column, environment.id));
    const aggregates = this.all("aggregate").map((aggregate) => this.aggregate(aggregate));
    const transformed_columns = this.all("transformed_column").map((column) =>
      this.transformedColumn(column),
    );
    const trained = this.all("model").map((model) => this.model(model));
    const models = trained.map(({ model }) => model);
    return {
      app: this.application.name,
      environment,
      raw_columns,
      aggregates,
      transformed_columns,
      training_datasets: trained.map(({ dataset }) => dataset),
      models,
      apis: this.all("api").map((api) => this.api(api, models)),
    };
  }

  private all<Kind extends Located["resource"]["kind"]>(kind: Kind): Located<Kind>["resource"][] {
    return ofKind(this.application.resources, kind).map(({ resource }) => resource);
  }

  private environment(): ResourceGraph["environment"] {
    const { environment: name, version } = this.inputs;
    const all = this.all("environment");
    const resource = all.find((environment) => environment.name === name);
    if (resource === undefined) {
      const message = `environment "${name}" is not defined; there are ${all.map((each) => each.name).join(", ")}: choose one with --environment`;
      throw new ServiceError("invalid_request", message);
    }
    const columns = this.all("raw_column").map(({ name: column, type }) => [column, type]);
    // A file of the project is identified by its content. Data elsewhere is read again only after a refresh.
    const own = isOwnPath(resource.data.path) ? this.inputs.hashOf(resource.data.path) : null;
    const id = contentId("environment", version, resource.limit, resource.data, own, columns.sort());
    return { kind: "environment", name, id, dependsOn: [], resource, version };
  }

  private rawColumn(
    resource: Located<"raw_column">["resource"],
    environment: string,
  ): ResourceGraph["raw_columns"][number] {
    const { name, type, required, min, max, values, tags } = resource;
    const id = contentId("raw_column", environment, name, type, required, min, max, values);
    this.setColumn(name, id, tags);
    return { kind: "raw_column", name, id, dependsOn: [environment], resource };
  }

  private aggregate(resource: Located<"aggregate">["resource"]): ResourceGraph["aggregates"][number] {
    const { name, aggregator } = resource;
    const own = this.all("aggregator").find((each) => each.name === aggregator);
    const code = codeOf(aggregator, own?.path ?? `implementations/aggregators/${aggregator}.py`, AGGREGATORS);
    const call = this.call(resource, code);
    const id = this.callId("aggregate", call);
    this.aggregateIds.set(name, id);
    return { kind: "aggregate", name, id, dependsOn: this.dependencies(call), resource, call };
  }

  private transformedColumn(
    resource: Located<"transformed_column">["resource"],
  ): ResourceGraph["transformed_columns"][number] {
    const { name, transformer, tags } = resource;
    const own = this.all("transformer").find((each) => each.name === transformer);
    const path = own?.path ?? `implementations/transformers/${transformer}.py`;
    const code = codeOf(transformer, path, TRANSFORMERS);
    const call = this.call(resource, code);
    const output_type = String("built_in" in code ? TRANSFORMERS[code.built_in]!.output : own!.output_type);
    const id = this.callId("transformed_column", call, output_type);
    this.setColumn(name, id, tags);
    return {
      ...{ kind: "transformed_column", name, id, dependsOn: this.dependencies(call), resource },
      ...{ call, output_type },
    };
  }

  private call(resource: Parameters<typeof givenTo>[0], code: Code): Call {
    const { columns, args } = givenTo(resource);
    const resolved = Object.entries(args).map(([name, value]) => [name, this.arg(value)] as const);
    return { code, columns, args: Object.fromEntries(resolved) };
  }

  /**
   * A string names a constant or an aggregate. A string that begins and ends with quotes, such as `'"a"'`, is a value.
   */
  private arg(value: unknown): Arg {
    if (typeof value !== "string") return { value };
    if (isQuoted(value)) return { value: value.slice(1, -1) };
    const aggregate = this.aggregateIds.get(value);
    return aggregate === undefined ? { value: this.constants.get(value) } : { aggregate };
  }

  private callId(kind: string, { code, columns, args }: Call, ...more: unknown[]): string {
    const ids = Object.entries(columns).map(([input, given]) => [
      input,
      [given].flat().map((column) => this.columnIds.get(column)),
    ]);
    const codeId = "path" in code ? this.inputs.hashOf(code.path) : code.built_in;
    return contentId(kind, codeId, Object.fromEntries(ids), args, ...more);
  }

  private dependencies({ columns, args }: Call): string[] {
    const given = Object.values(columns).flat();
    const aggregates = Object.values(args).flatMap((arg) => ("aggregate" in arg ? [arg.aggregate] : []));
    return unique([...given.map((column) => this.columnIds.get(column)!), ...aggregates]);
  }

  private model(resource: Located<"model">["resource"]): {
    dataset: ResourceGraph["training_datasets"][number];
    model: ResourceGraph["models"][number];
  } {
    const { name, target_column, feature_columns, training_columns, data_partition_ratio: given } = resource;
    const { training = RATIO.training, evaluation = RATIO.evaluation } = given;
    const ratio = [training, evaluation] as const;
    const columns = [...feature_columns, ...training_columns, target_column];
    const columnIds = columns.map((column) => this.columnIds.get(column)!);
    // Its rows have their columns by name, so the names enter its id.
    const datasetId = contentId(
      "training_dataset",
      training / (training + evaluation),
      named(columns, columnIds),
    );
    const path = resource.path ?? `implementations/models/${name}.py`;
    const aggregates = Object.fromEntries(
      resource.aggregates.map((aggregate) => [aggregate, this.aggregateIds.get(aggregate)!]),
    );
    const { type, prediction_key, hparams, tags } = resource;
    const id = contentId(
      ...["model", type, path, this.inputs.hashOf(path), this.inputs.requirements, prediction_key, hparams],
      ...[datasetId, resource.training, resource.evaluation, feature_columns, training_columns],
      ...[target_column, columns.map((column) => this.columnTags.get(column)), aggregates, tags],
    );
    const dataset = {
      ...{ kind: "training_dataset" as const, name: `${name}/training_dataset`, id: datasetId },
      ...{ dependsOn: unique(columnIds), ratio, columns },
    };
    const dependsOn = unique([datasetId, ...Object.values(aggregates)]);
    return {
      dataset,
      model: { kind: "model", name, id, dependsOn, resource, path, dataset: datasetId, aggregates },
    };
  }

  private api(
    resource: Located<"api">["resource"],
    models: ResourceGraph["models"],
  ): ResourceGraph["apis"][number] {
    const { name, model_name = name } = resource;
    const model = models.find((each) => each.name === model_name)!.id;
    return { kind: "api", name, id: contentId("api", name, model), dependsOn: [model], resource, model };
  }

  private setColumn(name: string, id: string, tags: unknown): void {
    this.columnIds.set(name, id);
    this.columnTags.set(name, tags);
  }
}

function codeOf(name: string, path: string, builtIn: Readonly<Record<string, unknown>>): Code {
  const known = builtInName(name);
  return known !== undefined && Object.hasOwn(builtIn, known) ? { built_in: known } : { path };
}

function named(names: readonly string[], ids: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, at) => [name, ids[at]!]));
}

function unique(ids: readonly string[]): string[] {
  return [...new Set(ids)];
}
