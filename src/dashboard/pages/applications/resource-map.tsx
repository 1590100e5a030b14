/** The graph of resources as a picture. Each node is a link to its details. */

import { Scroll } from "../../parts/scroll.tsx";
import { statusWords, toneOf } from "../../parts/status.tsx";
import type { ResourceState } from "../../shapes.ts";
import { type GraphNode, layOut, NODE } from "./resource-graph.ts";

interface MapProps {
  resources: readonly ResourceState[];
  /** `kind/name` */
  chosen: string | null;
  linkTo: (kind: string, name: string) => string;
}

export function ResourceMap({ resources, chosen, linkTo }: MapProps) {
  const { nodes, edges, width, height } = layOut(resources);
  return (
    <Scroll label="graph of resources" class="graph">
      <svg class="map" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>resources</title>
        {edges.map(({ from, to }) => (
          <path
            key={`${keyOf(from)} ${keyOf(to)}`}
            class={chosen === keyOf(from) || chosen === keyOf(to) ? "edge chosen" : "edge"}
            d={curve(from, to)}
          />
        ))}
        {nodes.map((node) => (
          <Node
            key={keyOf(node)}
            node={node}
            isChosen={chosen === keyOf(node)}
            href={linkTo(node.resource.kind, node.resource.name)}
          />
        ))}
      </svg>
    </Scroll>
  );
}

function Node({
  node: { resource, x, y },
  isChosen,
  href,
}: {
  node: GraphNode;
  isChosen: boolean;
  href: string;
}) {
  const { name, kind, status } = resource;
  return (
    <a href={href} aria-current={isChosen ? "true" : undefined}>
      <rect
        class={`node ${toneOf(status)}`}
        x={x + 0.5}
        y={y + 0.5}
        width={NODE.width - 1}
        height={NODE.height - 1}
        rx="6"
      />
      {/* HTML shortens a long name for the eye only: a screen reader and a voice command have all of it. */}
      <foreignObject x={x + 10} y={y + 4} width={NODE.width - 20} height={NODE.height - 8}>
        <div class="clip" title={name}>
          {name}
        </div>
        <div class="clip small quiet">
          {kind.replace("_", " ")} · {statusWords(status)}
        </div>
      </foreignObject>
    </a>
  );
}

const keyOf = ({ resource: { kind, name } }: GraphNode) => `${kind}/${name}`;

function curve(from: GraphNode, to: GraphNode): string {
  const [x1, y1] = [from.x + NODE.width, from.y + NODE.height / 2];
  const [x2, y2] = [to.x, to.y + NODE.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}
