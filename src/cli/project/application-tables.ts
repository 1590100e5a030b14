/** Shows applications and their resources as text, as Cortex did. Pure. */
import { stringify } from "yaml";
import type { ApplicationState, NodeKind, ResourceState } from "../../contracts/config/applications.ts";
import { dateTime, since, table } from "../terminal/table.ts";

/** The titles of the kinds, in the order in which they are computed. */
export const TITLES: Readonly<Record<NodeKind, string>> = {
  raw_column: "Raw Columns",
  aggregate: "Aggregates",
  transformed_column: "Transformed Columns",
  training_dataset: "Training Datasets",
  model: "Models",
  api: "APIs",
};
const KINDS = Object.keys(TITLES) as NodeKind[];
const TITLE_WIDTH = 23;

/** The order in which statuses are counted: ready, failed, skipped, in progress, waiting. */
const STATUS_ORDER: readonly (readonly string[])[] = [
  ["ready"],
  ["error", "upstream error", "terminated", "upstream termination", "compute unavailable"],
  ["skipped", "update skipped"],
  ["ingesting", "aggregating", "transforming", "generating", "training", "updating"],
  ["pending", "update pending"],
];

/** Finds a kind by its name, by the beginning of its name, or by its plural. */
export function kindOf(text: string): NodeKind | undefined {
  const wanted = text.toLowerCase().replace(/[- ]/g, "_");
  return KINDS.find((kind) => kind.startsWith(wanted) || `${kind}s`.startsWith(wanted));
}

/** All resources, with a section per kind. */
export function resourceTables({ resources }: ApplicationState): string {
  return KINDS.map((kind) => {
    const rows = ofKind(resources, kind).map((resource) => [resource.name, resource.status, ageOf(resource)]);
    const head = ["NAME", "STATUS", kind === "api" ? "LAST UPDATE" : "AGE"];
    return `${heading(TITLES[kind])}\n${rows.length === 0 ? "None" : table(head, rows)}`;
  }).join("\n\n");
}

/** The number of resources of each kind in each status. */
export function statusTable({ resources }: ApplicationState): string {
  return KINDS.map(
    (kind) => `${`${TITLES[kind]}:`.padEnd(TITLE_WIDTH)}${countsOf(ofKind(resources, kind))}`,
  ).join("\n");
}

/** The number of resources in each status. */
export function statusCounts({ resources }: ApplicationState): string {
  return countsOf(resources);
}

function countsOf(resources: readonly ResourceState[]): string {
  if (resources.length === 0) return "none";
  const statuses = [...new Set(resources.map(({ status }) => status))];
  const place = (status: string) => STATUS_ORDER.findIndex((group) => group.includes(status));
  return statuses
    .sort((a, b) => place(a) - place(b))
    .map((status) => `${resources.filter((resource) => resource.status === status).length} ${status}`)
    .join(" | ");
}

/** All details of one resource. */
export function resourceDetails(resource: ResourceState): string {
  const {
    kind,
    name,
    status,
    started_time,
    ended_time,
    reason,
    value,
    metrics,
    left_out,
    api,
    sample,
    config,
  } = resource;
  const summary = [
    ["Status:", status],
    ...(api === undefined ? [] : [["Updated replicas:", replicasOf(api)]]),
    ...(api === undefined ? [] : [["Last update:", dateTime(api.last_updated)]]),
    ...(started_time === undefined ? [] : [["Started at:", dateTime(started_time)]]),
    ...(ended_time === undefined ? [] : [["Ended at:", dateTime(ended_time)]]),
    ["Resource ID:", resource.resource_id],
  ];
  const why = reason ?? api?.message;
  const sections = [
    `${heading(`${kind} ${name}`)}\n${aligned(summary)}`,
    ...(why === undefined ? [] : [`${heading("Reason")}\n${why}`]),
    ...(value === undefined ? [] : [`${heading("Value")}\n${JSON.stringify(value)}`]),
    ...(left_out === undefined ? [] : [`${heading("Left out")}\n${left_out}`]),
    ...(metrics === undefined ? [] : [`${heading("Evaluation")}\n${aligned(metricRows(metrics))}`]),
    ...(sample === undefined ? [] : [`${heading("Endpoint")}\n${endpointOf(api?.endpoint, sample)}`]),
    ...(Object.keys(config).length === 0
      ? []
      : [`${heading("Configuration")}\n${stringify(config).trimEnd()}`]),
  ];
  return sections.join("\n\n");
}

function replicasOf(api: NonNullable<ResourceState["api"]>): string {
  return `${api.up_to_date_replicas}/${api.requested_replicas} ready`;
}

function metricRows(metrics: Record<string, number>): string[][] {
  return Object.entries(metrics).map(([name, value]) => [`${name}:`, String(Number(value.toPrecision(6)))]);
}

/** How to request a prediction, with the types of a sample's fields. */
function endpointOf(url: string | undefined, sample: Record<string, string>): string {
  const fields = Object.entries(sample).map(([name, type]) => `"${name}": ${type.replace(/_COLUMN$/, "")}`);
  return aligned([
    ["URL:", url ?? "not served yet"],
    ["Method:", "POST"],
    ["Header:", '"Content-Type: application/json"'],
    ["Payload:", `{ "samples": [ { ${fields.join(", ")} } ] }`],
  ]);
}

function ageOf({ api, ended_time, started_time }: ResourceState): string {
  const time = api?.last_updated ?? ended_time ?? started_time;
  return time === undefined ? "-" : since(time);
}

function ofKind(resources: readonly ResourceState[], kind: NodeKind): ResourceState[] {
  return resources.filter((resource) => resource.kind === kind);
}

function heading(title: string): string {
  return `${title}\n${"-".repeat(title.length)}`;
}

function aligned(rows: readonly (readonly string[])[]): string {
  const width = Math.max(...rows.map(([name]) => name!.length));
  return rows.map(([name, text]) => `${name!.padEnd(width)}  ${text}`).join("\n");
}
