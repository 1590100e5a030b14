/**
 * Reads a legacy application's files into resources: every YAML file of the directory, with templates filled in. Each
 * resource is checked alone. All errors are reported at once, with file, line and column.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { readYamlFile, type YamlPath } from "../../config/yaml-file.ts";
import {
  RESOURCE_KINDS,
  RESOURCE_SCHEMAS,
  type Resource,
  type ResourceKind,
} from "../../contracts/config/app-resources.ts";
import { withoutIdleKeys } from "../../contracts/config/idle-keys.ts";
import type { FieldError } from "../../contracts/errors.ts";
import { legalKeysOf, namedIssues } from "../../contracts/field-errors.ts";
import { EMBEDDED_TEXT_MAX } from "../../contracts/limits/configuration.ts";
import { fillTemplate } from "./templates.ts";

/** A resource and its position, for messages. */
export type Located<Kind extends ResourceKind = ResourceKind> = {
  resource: Resource<Kind>;
  positionOf: (path: YamlPath) => string;
};

/** What is wrong with a resource, and at which of its keys. */
export interface ResourceFault {
  path: YamlPath;
  detail: string;
}

export interface Application {
  name: string;
  resources: readonly Located[];
}

export function ofKind<Kind extends ResourceKind>(
  resources: readonly Located[],
  kind: Kind,
): Located<Kind>[] {
  return resources.filter(({ resource }) => resource.kind === kind) as Located<Kind>[];
}

/** Whether a configuration's text is an application's `app.yaml`, not a list of APIs. */
export function isApplication(text: string): boolean {
  const read = readYamlFile(text, "app.yaml");
  if (Array.isArray(read) || !Array.isArray(read.value)) return false;
  return read.value.some((entry) => (entry as { kind?: unknown } | null)?.kind === "app");
}

/** An entry of a file, or of a template that is used in one. */
interface Entry {
  value: unknown;
  file: string;
  positionOf: (path: YamlPath) => string;
}

/** `appText` is the `app.yaml`; `directory` has all other files. Returns the errors instead, if there are any. */
export function loadApp(
  appText: string,
  appFile: string,
  directory: string,
): { resources: Located[] } | { errors: FieldError[] } {
  const errors: FieldError[] = [];
  const entries = [
    ...readEntries(appText, appFile, errors),
    ...yamlFiles(directory).flatMap((file) =>
      readEntries(readFileSync(join(directory, file), "utf8"), file, errors),
    ),
  ];
  const embedded = embed(entries, errors);
  const resources = embedded.flatMap((entry) => {
    const located = checkEntry(entry, errors);
    return located === undefined ? [] : [located];
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

/** Replaces each embed by the resources of its template, and removes the templates. */
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
  // Entries of a template get the position of their embed.
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

function checkEntry(entry: Entry, errors: FieldError[]): Located | undefined {
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
