/** The graph of an application's resources: columns by kind, and a line from each resource to those that use it. Pure. */
import type { ResourceState } from "../../shapes.ts";

/** Left to right, as data flows. */
const KINDS = ["raw_column", "aggregate", "transformed_column", "training_dataset", "model", "api"] as const;

export interface GraphNode {
  resource: ResourceState;
  x: number;
  y: number;
}

export interface Graph {
  nodes: GraphNode[];
  edges: { from: GraphNode; to: GraphNode }[];
  width: number;
  height: number;
}

export const NODE = { width: 184, height: 44, gapX: 32, gapY: 12 };

export function layOut(resources: readonly ResourceState[]): Graph {
  const columns = KINDS.map((kind) => resources.filter((resource) => resource.kind === kind)).filter(
    (column) => column.length > 0,
  );
  const nodes = columns.flatMap((column, x) =>
    column.map((resource, y) => ({
      resource,
      x: x * (NODE.width + NODE.gapX),
      y: y * (NODE.height + NODE.gapY),
    })),
  );
  const rows = Math.max(0, ...columns.map((column) => column.length));
  return {
    nodes,
    edges: edgesOf(nodes),
    width: Math.max(0, columns.length * (NODE.width + NODE.gapX) - NODE.gapX),
    height: Math.max(0, rows * (NODE.height + NODE.gapY) - NODE.gapY),
  };
}

/** A configuration names what it uses. Only what comes before it can be meant. */
function edgesOf(nodes: readonly GraphNode[]): { from: GraphNode; to: GraphNode }[] {
  const byName = new Map<string, GraphNode[]>();
  for (const node of nodes) byName.set(node.resource.name, [...(byName.get(node.resource.name) ?? []), node]);
  return nodes.flatMap((to) => {
    const names = new Set(textsOf(to.resource.config));
    return [...names].flatMap((name) =>
      (byName.get(name) ?? []).filter((from) => from.x < to.x).map((from) => ({ from, to })),
    );
  });
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsOf);
}
