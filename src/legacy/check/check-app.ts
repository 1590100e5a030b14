/** Checks the resources of an application against each other. Pure, except that it asks whether files exist. */
import type { ResourceKind } from "../../contracts/config/app-resources.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { AGGREGATORS, builtInName, type Implementation, TRANSFORMERS } from "./built-ins.ts";
import { environmentFaults, rawColumnFaults } from "./check-data.ts";
import { givenTo, inputFaults, type Names } from "./check-inputs.ts";
import { modelFaults, UNKNOWN_TYPE } from "./check-model.ts";
import { nameFaults } from "./check-names.ts";
import { type Application, type Located, ofKind, type ResourceFault } from "./load-app.ts";
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

/** The aggregators or transformers that an application may name. */
interface Catalogue {
  builtIn: Readonly<Record<string, Implementation>>;
  own: Map<string, Implementation>;
}

class AppCheck {
  private readonly resources: readonly Located[];
  private readonly hasFile: (path: string) => boolean;
  private readonly errors: FieldError[] = [];
  private readonly rawColumns: ReadonlyMap<string, string>;
  private readonly transformedColumns: ReadonlySet<string>;
  private readonly aggregators: Catalogue = { builtIn: AGGREGATORS, own: new Map() };
  private readonly transformers: Catalogue = { builtIn: TRANSFORMERS, own: new Map() };
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
    for (const { located, path, detail } of nameFaults(this.resources)) this.add(located, path, detail);
    this.checkData();
    this.gatherImplementations();
    for (const located of this.all("constant")) this.checkConstant(located);
    for (const located of this.all("aggregate")) this.checkAggregate(located);
    for (const located of this.all("transformed_column")) this.checkTransformedColumn(located);
    this.checkModels();
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

  private addAll(located: Located, faults: Iterable<ResourceFault>): void {
    for (const { path, detail } of faults) this.add(located, path, detail);
  }

  private checkData(): void {
    for (const located of this.all("environment")) {
      const { path } = located.resource.data;
      if (isOwnPath(path)) this.checkFile(located, path, ["data", "path"]);
      this.addAll(located, environmentFaults(located.resource, this.rawColumns));
    }
    for (const located of this.all("raw_column")) this.addAll(located, rawColumnFaults(located.resource));
  }

  /** Collects the user's own implementations, whose files must exist. */
  private gatherImplementations(): void {
    for (const located of this.all("aggregator")) {
      const { name, path, inputs, output_type } = located.resource;
      this.checkFile(located, path ?? `implementations/aggregators/${name}.py`);
      const type = parseValueType(output_type);
      if (typeof type === "string") this.add(located, ["output_type"], type);
      this.checkArgTypes(located, inputs.args);
      this.aggregators.own.set(name, { ...inputs, output: output_type });
    }
    for (const located of this.all("transformer")) {
      const { name, path, inputs, output_type } = located.resource;
      this.checkFile(located, path ?? `implementations/transformers/${name}.py`);
      this.checkArgTypes(located, inputs.args);
      this.transformers.own.set(name, { ...inputs, output: output_type });
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
    const wanted = this.find(located, "aggregator", aggregator, this.aggregators);
    const output = parseValueType(wanted?.output);
    this.aggregates.set(name, typeof output === "string" ? undefined : output);
    if (wanted !== undefined) this.checkInputs(located, wanted, this.constants);
  }

  private checkTransformedColumn(located: Located<"transformed_column">): void {
    const wanted = this.find(located, "transformer", located.resource.transformer, this.transformers);
    if (wanted !== undefined)
      this.checkInputs(located, wanted, new Map([...this.constants, ...this.aggregates]));
  }

  private find(
    located: Located,
    key: "aggregator" | "transformer",
    name: string,
    catalogue: Catalogue,
  ): Implementation | undefined {
    const found = implementationOf(name, catalogue);
    if (found !== undefined) return found;
    const legal =
      builtInName(name) === undefined
        ? [...catalogue.own.keys(), `quern.${Object.keys(catalogue.builtIn)[0]}`, "…"]
        : Object.keys(catalogue.builtIn).map((each) => `quern.${each}`);
    this.add(located, [key], `${key} "${name}" is not defined; there are ${legal.join(", ")}`);
    return undefined;
  }

  private checkInputs(
    located: Located<"aggregate" | "transformed_column">,
    wanted: Implementation,
    args: Names["args"],
  ): void {
    const { rawColumns, transformedColumns } = this;
    const names = { rawColumns, transformedColumns, args };
    this.addAll(located, inputFaults(givenTo(located.resource), wanted, names));
  }

  private checkModels(): void {
    const columns = this.columnTypes();
    const aggregates = new Set(this.aggregates.keys());
    for (const located of this.all("model")) {
      const { name, path } = located.resource;
      this.checkFile(located, path ?? `implementations/models/${name}.py`);
      this.addAll(located, modelFaults(located.resource, columns, aggregates));
    }
  }

  /** The types of all columns by name. Of two with the same name, the raw one or the first one counts. */
  private columnTypes(): ReadonlyMap<string, string> {
    const types = new Map(this.rawColumns);
    for (const { resource } of this.all("transformed_column")) {
      const found = implementationOf(resource.transformer, this.transformers);
      if (!types.has(resource.name))
        types.set(resource.name, found === undefined ? UNKNOWN_TYPE : String(found.output));
    }
    return types;
  }

  private checkApi(located: Located<"api">): void {
    const model = located.resource.model_name ?? located.resource.name;
    if (!this.all("model").some(({ resource }) => resource.name === model))
      this.add(located, ["model_name"], `model "${model}" is not defined`);
  }

  private checkFile(located: Located, path: string, key: readonly string[] = ["path"]): void {
    if (!this.hasFile(path)) this.add(located, key, `${path}: file does not exist in the application`);
  }
}

function implementationOf(name: string, { builtIn, own }: Catalogue): Implementation | undefined {
  const known = builtInName(name);
  if (known === undefined) return own.get(name);
  return Object.hasOwn(builtIn, known) ? builtIn[known] : undefined;
}
