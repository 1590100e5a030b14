/** Checks the resources of an application against each other. Pure, except that it asks whether files exist. */
import type { ResourceKind } from "../../contracts/config/app-resources.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { AGGREGATORS, builtInName, type Implementation, TRANSFORMERS } from "./built-ins.ts";
import { givenTo, inputFaults, type Names } from "./check-inputs.ts";
import { type Application, type Located, ofKind } from "./load-app.ts";
import { isOwnPath } from "./own-path.ts";
import { isOfType, parseValueType, type ValueType } from "./value-types.ts";

/** `hasFile`: whether the application's directory has this file. Returns the errors instead, if there are any. */
export function checkApp(
  resources: readonly Located[],
  hasFile: (path: string) => boolean,
): Application | { errors: FieldError[] } {
  const check = new AppCheck(resources, hasFile);
  const errors = check.run();
  const [app] = ofKind(resources, "app");
  return errors.length > 0 || app === undefined ? { errors } : { name: app.resource.name, resources };
}

/** The type of a column whose transformer is unknown: reported there, not twice. */
const UNKNOWN = "";

class AppCheck {
  private readonly resources: readonly Located[];
  private readonly hasFile: (path: string) => boolean;
  private readonly errors: FieldError[] = [];
  private readonly rawColumns: ReadonlyMap<string, string>;
  private readonly transformedColumns: ReadonlySet<string>;
  private readonly aggregators = new Map<string, Implementation>();
  private readonly transformers = new Map<string, Implementation>();
  private readonly constants = new Map<string, ValueType | undefined>();
  /** Undefined if the type is unknown: reported where it is wrong, not twice. */
  private readonly aggregates = new Map<string, ValueType | undefined>();

  constructor(resources: readonly Located[], hasFile: (path: string) => boolean) {
    this.resources = resources;
    this.hasFile = hasFile;
    const columns = new Map<string, string>();
    // If two have the same name, the first one counts.
    for (const { resource } of this.all("raw_column"))
      if (!columns.has(resource.name)) columns.set(resource.name, resource.type);
    this.rawColumns = columns;
    this.transformedColumns = new Set(this.all("transformed_column").map(({ resource }) => resource.name));
  }

  run(): FieldError[] {
    this.checkNames();
    for (const located of this.all("environment")) this.checkEnvironment(located);
    for (const located of this.all("raw_column")) this.checkRawColumn(located);
    this.gatherImplementations();
    for (const located of this.all("constant")) this.checkConstant(located);
    for (const located of this.all("aggregate")) this.checkAggregate(located);
    for (const located of this.all("transformed_column")) this.checkTransformedColumn(located);
    for (const located of this.all("model")) this.checkModel(located);
    for (const located of this.all("api")) this.checkApi(located);
    return this.errors;
  }

  private all<Kind extends ResourceKind>(kind: Kind): Located<Kind>[] {
    return ofKind(this.resources, kind);
  }

  private add(located: Located, path: readonly (string | number)[], detail: string): void {
    const { kind, name } = located.resource;
    const key = path.length === 0 ? "" : `${path.join(".")}: `;
    this.errors.push({ pointer: located.positionOf(path), detail: `${kind}: ${name}: ${key}${detail}` });
  }

  /** One app; at least one environment; names are unique, over all columns, and over constants and aggregates. */
  private checkNames(): void {
    const [first, ...more] = this.all("app");
    for (const located of more)
      this.add(located, [], `there is one app only; the first is ${first!.resource.name}`);
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
      const seen = new Map<string, Located>();
      for (const located of this.resources.filter(({ resource }) => space.includes(resource.kind))) {
        const { name } = located.resource;
        const before = seen.get(name);
        if (before !== undefined)
          this.add(located, ["name"], `is used twice; the other is of the kind ${before.resource.kind}`);
        seen.set(name, located);
      }
    }
  }

  private checkEnvironment(located: Located<"environment">): void {
    const { data, limit } = located.resource;
    if (isOwnPath(data.path)) this.checkFile(located, data.path, ["data", "path"]);
    if (limit?.num_rows !== undefined && limit.fraction_of_rows !== undefined)
      this.add(located, ["limit"], "give num_rows or fraction_of_rows, not both");
    const ingested = data.schema.map((column) =>
      typeof column === "string" ? column : column.raw_column_name,
    );
    ingested.forEach((name, at) => {
      if (!this.rawColumns.has(name))
        this.add(located, ["data", "schema", at], `"${name}" is not a raw column`);
      if (ingested.indexOf(name) !== at)
        this.add(located, ["data", "schema", at], `"${name}" is named twice`);
    });
    const missing = [...this.rawColumns.keys()].filter((name) => !ingested.includes(name));
    if (missing.length > 0)
      this.add(
        located,
        ["data", "schema"],
        `all raw columns must be ingested (missing: ${missing.join(", ")})`,
      );
  }

  private checkRawColumn(located: Located<"raw_column">): void {
    const { type, min, max, values } = located.resource;
    const isText = type === "STRING_COLUMN";
    for (const [key, bound] of [
      ["min", min],
      ["max", max],
    ] as const)
      if (isText && bound !== undefined) this.add(located, [key], "is for number columns only");
    if (min !== undefined && max !== undefined && min > max)
      this.add(located, ["min"], `must not be above max (${max})`);
    values?.forEach((value, at) => {
      const fits = isText
        ? typeof value === "string"
        : typeof value === "number" && (type === "FLOAT_COLUMN" || Number.isInteger(value));
      if (!fits) this.add(located, ["values", at], `${JSON.stringify(value)} is not a value of a ${type}`);
    });
  }

  /** Collects the user's own implementations, whose files must exist. */
  private gatherImplementations(): void {
    for (const located of this.all("aggregator")) {
      const { name, path, inputs, output_type } = located.resource;
      this.checkFile(located, path ?? `implementations/aggregators/${name}.py`);
      const type = parseValueType(output_type);
      if (typeof type === "string") this.add(located, ["output_type"], type);
      this.checkArgTypes(located, inputs.args);
      this.aggregators.set(name, { ...inputs, output: output_type });
    }
    for (const located of this.all("transformer")) {
      const { name, path, inputs, output_type } = located.resource;
      this.checkFile(located, path ?? `implementations/transformers/${name}.py`);
      this.checkArgTypes(located, inputs.args);
      this.transformers.set(name, { ...inputs, output: output_type });
    }
  }

  private checkArgTypes(located: Located, args: Readonly<Record<string, unknown>>): void {
    for (const [name, declared] of Object.entries(args)) {
      const type = parseValueType(declared);
      if (typeof type === "string") this.add(located, ["inputs", "args", name], type);
    }
  }

  private checkConstant(located: Located<"constant">): void {
    const { name, type: declared, value } = located.resource;
    const type = parseValueType(declared);
    this.constants.set(name, typeof type === "string" ? undefined : type);
    if (typeof type === "string") return this.add(located, ["type"], type);
    if (!isOfType(value, type))
      this.add(located, ["value"], `${JSON.stringify(value)} is not of the constant's type`);
  }

  private checkAggregate(located: Located<"aggregate">): void {
    const { name, aggregator } = located.resource;
    const wanted = this.find(located, "aggregator", aggregator, AGGREGATORS, this.aggregators);
    const output = parseValueType(wanted?.output);
    this.aggregates.set(name, typeof output === "string" ? undefined : output);
    if (wanted !== undefined) this.checkInputs(located, wanted, this.constants);
  }

  private checkTransformedColumn(located: Located<"transformed_column">): void {
    const wanted = this.find(
      located,
      "transformer",
      located.resource.transformer,
      TRANSFORMERS,
      this.transformers,
    );
    if (wanted !== undefined)
      this.checkInputs(located, wanted, new Map([...this.constants, ...this.aggregates]));
  }

  private find(
    located: Located,
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
    this.add(located, [key], `${key} "${name}" is not defined; there are ${legal.join(", ")}`);
    return undefined;
  }

  private checkInputs(
    located: Located<"aggregate" | "transformed_column">,
    wanted: Implementation,
    args: Names["args"],
  ): void {
    const { rawColumns, transformedColumns } = this;
    for (const { path, detail } of inputFaults(givenTo(located.resource), wanted, {
      rawColumns,
      transformedColumns,
      args,
    }))
      this.add(located, path, detail);
  }

  private checkModel(located: Located<"model">): void {
    const {
      name,
      path,
      type,
      target_column: target,
      feature_columns,
      training_columns,
      aggregates,
    } = located.resource;
    this.checkFile(located, path ?? `implementations/models/${name}.py`);
    this.checkColumns(located, "feature_columns", feature_columns);
    this.checkColumns(located, "training_columns", training_columns);
    for (const column of training_columns.filter((each) => feature_columns.includes(each)))
      this.add(located, ["training_columns"], `"${column}" is a feature column already`);
    aggregates.forEach((aggregate, at) => {
      if (!this.aggregates.has(aggregate))
        this.add(located, ["aggregates", at], `aggregate "${aggregate}" is not defined`);
    });
    this.checkTarget(located, target, type);
    this.checkNumbers(located);
  }

  private checkColumns(located: Located, key: string, columns: readonly string[]): void {
    columns.forEach((column, at) => {
      if (this.columnType(column) === undefined)
        this.add(located, [key, at], `column "${column}" is not defined`);
      if (columns.indexOf(column) !== at) this.add(located, [key, at], `"${column}" is named twice`);
    });
  }

  private checkTarget(located: Located, target: string, type: "classification" | "regression"): void {
    const column = this.columnType(target);
    if (column === undefined)
      return this.add(located, ["target_column"], `column "${target}" is not defined`);
    if (column === UNKNOWN) return;
    if (type === "classification" && column !== "INT_COLUMN")
      this.add(
        located,
        ["target_column"],
        `classification models can only predict integer target values (i.e. {0, 1, ..., num_classes-1}), and "${target}" is a ${column}`,
      );
    if (type === "regression" && column !== "INT_COLUMN" && column !== "FLOAT_COLUMN")
      this.add(
        located,
        ["target_column"],
        `regression models can only predict numbers, and "${target}" is a ${column}`,
      );
  }

  private checkNumbers(located: Located<"model">): void {
    const { data_partition_ratio: ratio, training, evaluation } = located.resource;
    if ((ratio.training === undefined) !== (ratio.evaluation === undefined))
      this.add(located, ["data_partition_ratio"], "give training and evaluation, or neither");
    for (const [key, phase] of [
      ["training", training],
      ["evaluation", evaluation],
    ] as const)
      if (phase.num_steps !== undefined && phase.num_epochs !== undefined)
        this.add(located, [key], "give num_steps or num_epochs, not both");
    if (training.save_checkpoints_secs !== undefined && training.save_checkpoints_steps !== undefined)
      this.add(located, ["training"], "give save_checkpoints_secs or save_checkpoints_steps, not both");
  }

  private checkApi(located: Located<"api">): void {
    const model = located.resource.model_name ?? located.resource.name;
    if (!this.all("model").some(({ resource }) => resource.name === model))
      this.add(located, ["model_name"], `model "${model}" is not defined`);
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

  private checkFile(located: Located, path: string, key: readonly string[] = ["path"]): void {
    if (!this.hasFile(path)) this.add(located, key, `${path}: file does not exist in the application`);
  }
}
