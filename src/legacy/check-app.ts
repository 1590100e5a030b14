/** What the resources of an application must be to each other, purely but for whether files are there. */
import type { ResourceKind } from "../contracts/app-resources.ts";
import type { FieldError } from "../contracts/errors.ts";
import { AGGREGATORS, builtInName, type Implementation, TRANSFORMERS } from "./built-ins.ts";
import { givenTo, inputFaults, type Names } from "./check-inputs.ts";
import { type Application, ofKind, type Placed } from "./load-app.ts";
import { isOwnPath } from "./own-path.ts";
import { isOfType, parseValueType, type ValueType } from "./value-types.ts";

/** `hasFile`: whether the application's directory has this file. Returns what is wrong instead, where something is. */
export function checkApp(
  resources: readonly Placed[],
  hasFile: (path: string) => boolean,
): Application | { errors: FieldError[] } {
  const check = new AppCheck(resources, hasFile);
  const errors = check.run();
  const [app] = ofKind(resources, "app");
  return errors.length > 0 || app === undefined ? { errors } : { name: app.resource.name, resources };
}

/** The type of a column whose transformer is not known: that is told there, and not again. */
const UNKNOWN = "";

class AppCheck {
  private readonly resources: readonly Placed[];
  private readonly hasFile: (path: string) => boolean;
  private readonly errors: FieldError[] = [];
  private readonly rawColumns: ReadonlyMap<string, string>;
  private readonly transformedColumns: ReadonlySet<string>;
  private readonly aggregators = new Map<string, Implementation>();
  private readonly transformers = new Map<string, Implementation>();
  private readonly constants = new Map<string, ValueType | undefined>();
  /** Undefined where the type cannot be known: that is told where it is wrong, and not again. */
  private readonly aggregates = new Map<string, ValueType | undefined>();

  constructor(resources: readonly Placed[], hasFile: (path: string) => boolean) {
    this.resources = resources;
    this.hasFile = hasFile;
    const columns = new Map<string, string>();
    // Of two with a name the first one counts.
    for (const { resource } of this.all("raw_column"))
      if (!columns.has(resource.name)) columns.set(resource.name, resource.type);
    this.rawColumns = columns;
    this.transformedColumns = new Set(this.all("transformed_column").map(({ resource }) => resource.name));
  }

  run(): FieldError[] {
    this.checkNames();
    for (const placed of this.all("environment")) this.checkEnvironment(placed);
    for (const placed of this.all("raw_column")) this.checkRawColumn(placed);
    this.gatherImplementations();
    for (const placed of this.all("constant")) this.checkConstant(placed);
    for (const placed of this.all("aggregate")) this.checkAggregate(placed);
    for (const placed of this.all("transformed_column")) this.checkTransformedColumn(placed);
    for (const placed of this.all("model")) this.checkModel(placed);
    for (const placed of this.all("api")) this.checkApi(placed);
    return this.errors;
  }

  private all<Kind extends ResourceKind>(kind: Kind): Placed<Kind>[] {
    return ofKind(this.resources, kind);
  }

  private add(placed: Placed, path: readonly (string | number)[], detail: string): void {
    const { kind, name } = placed.resource;
    const key = path.length === 0 ? "" : `${path.join(".")}: `;
    this.errors.push({ pointer: placed.positionOf(path), detail: `${kind}: ${name}: ${key}${detail}` });
  }

  /** One app; at least one environment; names are unique, over all columns, and over constants and aggregates. */
  private checkNames(): void {
    const [first, ...more] = this.all("app");
    for (const placed of more)
      this.add(placed, [], `there is one app only; the first is ${first!.resource.name}`);
    if (this.all("environment").length === 0 && first !== undefined)
      this.add(first, [], "there is no environment; define one with its data");
    const spaces: ResourceKind[][] = [
      ["environment"],
      ["raw_column", "transformed_column"],
      ["constant", "aggregate"],
      ["aggregator"],
      ["transformer"],
      ["model"],
      ["api"],
    ];
    for (const space of spaces) {
      const seen = new Map<string, Placed>();
      for (const placed of this.resources.filter(({ resource }) => space.includes(resource.kind))) {
        const { name } = placed.resource;
        const before = seen.get(name);
        if (before !== undefined)
          this.add(placed, ["name"], `is used twice; the other is of the kind ${before.resource.kind}`);
        seen.set(name, placed);
      }
    }
  }

  private checkEnvironment(placed: Placed<"environment">): void {
    const { data, limit } = placed.resource;
    if (isOwnPath(data.path)) this.checkFile(placed, data.path, ["data", "path"]);
    if (limit?.num_rows !== undefined && limit.fraction_of_rows !== undefined)
      this.add(placed, ["limit"], "give num_rows or fraction_of_rows, not both");
    const ingested = data.schema.map((column) =>
      typeof column === "string" ? column : column.raw_column_name,
    );
    ingested.forEach((name, at) => {
      if (!this.rawColumns.has(name))
        this.add(placed, ["data", "schema", at], `"${name}" is not a raw column`);
      if (ingested.indexOf(name) !== at) this.add(placed, ["data", "schema", at], `"${name}" is named twice`);
    });
    const missing = [...this.rawColumns.keys()].filter((name) => !ingested.includes(name));
    if (missing.length > 0)
      this.add(
        placed,
        ["data", "schema"],
        `all raw columns must be ingested (missing: ${missing.join(", ")})`,
      );
  }

  private checkRawColumn(placed: Placed<"raw_column">): void {
    const { type, min, max, values } = placed.resource;
    const isText = type === "STRING_COLUMN";
    for (const [key, bound] of [
      ["min", min],
      ["max", max],
    ] as const)
      if (isText && bound !== undefined) this.add(placed, [key], "is for number columns only");
    if (min !== undefined && max !== undefined && min > max)
      this.add(placed, ["min"], `must not be above max (${max})`);
    values?.forEach((value, at) => {
      const fits = isText
        ? typeof value === "string"
        : typeof value === "number" && (type === "FLOAT_COLUMN" || Number.isInteger(value));
      if (!fits) this.add(placed, ["values", at], `${JSON.stringify(value)} is not a value of a ${type}`);
    });
  }

  /** Those of the user's own; their files must be there. */
  private gatherImplementations(): void {
    for (const placed of this.all("aggregator")) {
      const { name, path, inputs, output_type } = placed.resource;
      this.checkFile(placed, path ?? `implementations/aggregators/${name}.py`);
      const type = parseValueType(output_type);
      if (typeof type === "string") this.add(placed, ["output_type"], type);
      this.checkArgTypes(placed, inputs.args);
      this.aggregators.set(name, { ...inputs, output: output_type });
    }
    for (const placed of this.all("transformer")) {
      const { name, path, inputs, output_type } = placed.resource;
      this.checkFile(placed, path ?? `implementations/transformers/${name}.py`);
      this.checkArgTypes(placed, inputs.args);
      this.transformers.set(name, { ...inputs, output: output_type });
    }
  }

  private checkArgTypes(placed: Placed, args: Readonly<Record<string, unknown>>): void {
    for (const [name, declared] of Object.entries(args)) {
      const type = parseValueType(declared);
      if (typeof type === "string") this.add(placed, ["inputs", "args", name], type);
    }
  }

  private checkConstant(placed: Placed<"constant">): void {
    const { name, type: declared, value } = placed.resource;
    const type = parseValueType(declared);
    this.constants.set(name, typeof type === "string" ? undefined : type);
    if (typeof type === "string") return this.add(placed, ["type"], type);
    if (!isOfType(value, type))
      this.add(placed, ["value"], `${JSON.stringify(value)} is not of the constant's type`);
  }

  private checkAggregate(placed: Placed<"aggregate">): void {
    const { name, aggregator } = placed.resource;
    const wanted = this.find(placed, "aggregator", aggregator, AGGREGATORS, this.aggregators);
    const output = parseValueType(wanted?.output);
    this.aggregates.set(name, typeof output === "string" ? undefined : output);
    if (wanted !== undefined) this.checkInputs(placed, wanted, this.constants);
  }

  private checkTransformedColumn(placed: Placed<"transformed_column">): void {
    const wanted = this.find(
      placed,
      "transformer",
      placed.resource.transformer,
      TRANSFORMERS,
      this.transformers,
    );
    if (wanted !== undefined)
      this.checkInputs(placed, wanted, new Map([...this.constants, ...this.aggregates]));
  }

  private find(
    placed: Placed,
    key: "aggregator" | "transformer",
    name: string,
    builtIn: Readonly<Record<string, Implementation>>,
    own: ReadonlyMap<string, Implementation>,
  ): Implementation | undefined {
    const known = builtInName(name);
    const found =
      known === undefined ? own.get(name) : Object.hasOwn(builtIn, known) ? builtIn[known] : undefined;
    if (found !== undefined) return found;
    const legal =
      known === undefined
        ? [...own.keys(), `quern.${Object.keys(builtIn)[0]}`, "…"]
        : Object.keys(builtIn).map((each) => `quern.${each}`);
    this.add(placed, [key], `${key} "${name}" is not defined; there are ${legal.join(", ")}`);
    return undefined;
  }

  private checkInputs(
    placed: Placed<"aggregate" | "transformed_column">,
    wanted: Implementation,
    args: Names["args"],
  ): void {
    const { rawColumns, transformedColumns } = this;
    for (const { path, detail } of inputFaults(givenTo(placed.resource), wanted, {
      rawColumns,
      transformedColumns,
      args,
    }))
      this.add(placed, path, detail);
  }

  private checkModel(placed: Placed<"model">): void {
    const {
      name,
      path,
      type,
      target_column: target,
      feature_columns,
      training_columns,
      aggregates,
    } = placed.resource;
    this.checkFile(placed, path ?? `implementations/models/${name}.py`);
    this.checkColumns(placed, "feature_columns", feature_columns);
    this.checkColumns(placed, "training_columns", training_columns);
    for (const column of training_columns.filter((each) => feature_columns.includes(each)))
      this.add(placed, ["training_columns"], `"${column}" is a feature column already`);
    aggregates.forEach((aggregate, at) => {
      if (!this.aggregates.has(aggregate))
        this.add(placed, ["aggregates", at], `aggregate "${aggregate}" is not defined`);
    });
    this.checkTarget(placed, target, type);
    this.checkNumbers(placed);
  }

  private checkColumns(placed: Placed, key: string, columns: readonly string[]): void {
    columns.forEach((column, at) => {
      if (this.columnType(column) === undefined)
        this.add(placed, [key, at], `column "${column}" is not defined`);
      if (columns.indexOf(column) !== at) this.add(placed, [key, at], `"${column}" is named twice`);
    });
  }

  private checkTarget(placed: Placed, target: string, type: "classification" | "regression"): void {
    const column = this.columnType(target);
    if (column === undefined) return this.add(placed, ["target_column"], `column "${target}" is not defined`);
    if (column === UNKNOWN) return;
    if (type === "classification" && column !== "INT_COLUMN")
      this.add(
        placed,
        ["target_column"],
        `classification models can only predict integer target values (i.e. {0, 1, ..., num_classes-1}), and "${target}" is a ${column}`,
      );
    if (type === "regression" && column !== "INT_COLUMN" && column !== "FLOAT_COLUMN")
      this.add(
        placed,
        ["target_column"],
        `regression models can only predict numbers, and "${target}" is a ${column}`,
      );
  }

  private checkNumbers(placed: Placed<"model">): void {
    const { data_partition_ratio: ratio, training, evaluation } = placed.resource;
    if ((ratio.training === undefined) !== (ratio.evaluation === undefined))
      this.add(placed, ["data_partition_ratio"], "give training and evaluation, or neither");
    for (const [key, phase] of [
      ["training", training],
      ["evaluation", evaluation],
    ] as const)
      if (phase.num_steps !== undefined && phase.num_epochs !== undefined)
        this.add(placed, [key], "give num_steps or num_epochs, not both");
    if (training.save_checkpoints_secs !== undefined && training.save_checkpoints_steps !== undefined)
      this.add(placed, ["training"], "give save_checkpoints_secs or save_checkpoints_steps, not both");
  }

  private checkApi(placed: Placed<"api">): void {
    const model = placed.resource.model_name ?? placed.resource.name;
    if (!this.all("model").some(({ resource }) => resource.name === model))
      this.add(placed, ["model_name"], `model "${model}" is not defined`);
  }

  private columnType(name: string): string | undefined {
    const raw = this.rawColumns.get(name);
    if (raw !== undefined) return raw;
    const found = this.all("transformed_column").find(({ resource }) => resource.name === name);
    if (found === undefined) return undefined;
    const known = builtInName(found.resource.transformer);
    const wanted =
      known === undefined ? this.transformers.get(found.resource.transformer) : TRANSFORMERS[known];
    return wanted === undefined ? UNKNOWN : String(wanted.output);
  }

  private checkFile(placed: Placed, path: string, key: readonly string[] = ["path"]): void {
    if (!this.hasFile(path)) this.add(placed, key, `${path}: file does not exist in the application`);
  }
}
