/**
 * A legacy application's files into checked resources: every YAML file of the directory, templates filled in, each resource
 * alone. All that is wrong comes at once, with file, line and column.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { readYamlFile, type YamlPath } from "../config/yaml-file.ts";
import {
  RESOURCE_KINDS,
  RESOURCE_SCHEMAS,
  type Resource,
  type ResourceKind,
} from "../contracts/app-resources.ts";
import type { FieldError } from "../contracts/errors.ts";
import { legalKeysOf, namedIssues } from "../contracts/field-errors.ts";
import { withoutIdleKeys } from "../contracts/idle-keys.ts";
import { EMBEDDED_TEXT_MAX } from "../contracts/limits.ts";
import { fillTemplate } from "./templates.ts";

/** A resource with where it stands, for messages. */
export type Placed<Kind extends ResourceKind = ResourceKind> = {
  resource: Resource<Kind>;
  positionOf: (path: YamlPath) => string;
};

export interface Application {
  name: string;
  resources: readonly Placed[];
}

export function ofKind<Kind extends ResourceKind>(resources: readonly Placed[], kind: Kind): Placed<Kind>[] {
  return resources.filter(({ resource }) => resource.kind === kind) as Placed<Kind>[];
}

/** Whether a configuration's text is an application's `app.yaml`, rather than a list of APIs. */
export function isApplication(text: string): boolean {
  const read = readYamlFile(text, "app.yaml");
  if (Array.isArray(read) || !Array.isArray(read.value)) return false;
  return read.value.some((entry) => (entry as { kind?: unknown } | null)?.kind === "app");
}

/** An entry of a file, or of a template that stands in one. */
interface Entry {
  value: unknown;
  file: string;
  positionOf: (path: YamlPath) => string;
}

/** `appText` is the `app.yaml`; `directory` has all other files. Returns what is wrong instead, where something is. */
export function loadApp(
  appText: string,
  appFile: string,
  directory: string,
): { resources: Placed[] } | { errors: FieldError[] } {
  const errors: FieldError[] = [];
  const entries = [
    ...readEntries(appText, appFile, errors),
    ...yamlFiles(directory).flatMap((file) =>
      readEntries(readFileSync(join(directory, file), "utf8"), file, errors),
    ),
  ];
  const embedded = embed(entries, errors);
  const resources = embedded.flatMap((entry) => {
    const placed = checkEntry(entry, errors);
    return placed === undefined ? [] : [placed];
  });
  return errors.length > 0 ? { errors } : { resources };
}

function yamlFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .sort();
}

function readEntries(text: string, file: string, errors: FieldError[]): Entry[] {
  const read = readYamlFile(text, file);
  if (Array.isArray(read)) {
    errors.push(...read);
    return [];
  }
  // An empty file has no resources.
  if (read.value === null) return [];
  if (!Array.isArray(read.value)) {
    errors.push({
      pointer: `${file}:1:1`,
      detail: "must be a list of resources: begin each with `- kind: …`",
    });
    return [];
  }
  return read.value.map((value, at) => ({
    value,
    file,
    positionOf: (path) => read.positionOf([at, ...path]),
  }));
}

/** Each embed by the resources of its template; templates are gone then. */
function embed(entries: readonly Entry[], errors: FieldError[]): Entry[] {
  const templates = new Map<string, string>();
  for (const entry of entries.filter(({ value }) => kindOf(value) === "template")) {
    const { name, yaml, ...more } = entry.value as Record<string, unknown>;
    const isWhole = typeof name === "string" && typeof yaml === "string" && Object.keys(more).length === 1;
    if (!isWhole) add(entry, errors, [], "template: must have a name and the text yaml, and nothing else");
    else if (templates.has(name))
      add(entry, errors, ["name"], `template: ${name}: name: is used by two templates`);
    else templates.set(name, yaml);
  }
  const budget = { left: EMBEDDED_TEXT_MAX };
  return entries.flatMap((entry) => {
    const kind = kindOf(entry.value);
    if (kind === "template") return [];
    return kind === "embed" ? embedOne(entry, templates, budget, errors) : [entry];
  });
}

function embedOne(
  entry: Entry,
  templates: ReadonlyMap<string, string>,
  budget: { left: number },
  errors: FieldError[],
): Entry[] {
  if (budget.left < 0) return [];
  const { template, args = {} } = entry.value as { template?: unknown; args?: unknown };
  const text = templates.get(String(template));
  if (text === undefined) {
    add(entry, errors, ["template"], `embed: template "${String(template)}" is not defined`);
    return [];
  }
  const filled = fillTemplate(String(template), text, args as Record<string, unknown>);
  if ("faults" in filled) {
    for (const fault of filled.faults) add(entry, errors, ["args"], `embed: ${fault}`);
    return [];
  }
  budget.left -= filled.text.length;
  if (budget.left < 0) {
    add(
      entry,
      errors,
      ["template"],
      `embed: with template "${String(template)}" the embeds have more than ${EMBEDDED_TEXT_MAX} characters; deploy fewer, or a smaller template`,
    );
    return [];
  }
  // What stands in a template has the place of the embed that brought it.
  const inner = readEntries(filled.text, entry.file, []);
  const nested = inner.find(({ value }) => ["template", "embed"].includes(String(kindOf(value))));
  if (inner.length === 0)
    add(entry, errors, [], `embed: template "${String(template)}" gives no list of resources`);
  if (nested !== undefined)
    add(
      entry,
      errors,
      [],
      `embed: template "${String(template)}" has an entry of the kind ${String(kindOf(nested.value))}; it may have resources only`,
    );
  return nested === undefined
    ? inner.map(({ value, file }) => ({ value, file, positionOf: () => entry.positionOf([]) }))
    : [];
}

function checkEntry(entry: Entry, errors: FieldError[]): Placed | undefined {
  const { positionOf } = entry;
  const kind = kindOf(entry.value);
  if (!RESOURCE_KINDS.includes(kind as ResourceKind)) {
    const legal = [...RESOURCE_KINDS, "template", "embed"].join(", ");
    add(
      entry,
      errors,
      ["kind"],
      kind === undefined
        ? `every resource must have a kind: ${legal}`
        : `kind "${String(kind)}" is not known; kinds are ${legal}`,
    );
    return undefined;
  }
  const schema = RESOURCE_SCHEMAS[kind as ResourceKind];
  const value = withoutIdleKeys(schema, entry.value);
  const name = String((value as { name?: unknown }).name ?? "");
  const checked = schema.safeParse(value);
  if (checked.success) return { resource: checked.data as Resource, positionOf };
  for (const { path, detail } of namedIssues(checked.error.issues, value, (at) => legalKeysOf(schema, at))) {
    const key = path.length === 0 ? "" : `${path.join(".")}: `;
    errors.push({ pointer: positionOf(path), detail: `${String(kind)}: ${name}: ${key}${detail}` });
  }
  return undefined;
}

function add({ positionOf }: Entry, errors: FieldError[], path: YamlPath, detail: string): void {
  errors.push({ pointer: positionOf(path), detail });
}

function kindOf(value: unknown): unknown {
  return (value as { kind?: unknown } | null)?.kind;
}
