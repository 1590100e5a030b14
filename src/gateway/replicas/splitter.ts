/** A TrafficSplitter: chooses the API for a request by weight, or always the same one for the same `X-Quern-Sticky`. */
import { createHash } from "node:crypto";
import type { SplitterRoute } from "../../contracts/routes.ts";
import type { ApiPool } from "./api-pool.ts";

type Weighted = SplitterRoute["apis"][number];

export class Splitter {
  private readonly serving: readonly Weighted[];
  private readonly shadow: Weighted | undefined;
  private readonly poolOf: (name: string) => ApiPool | undefined;

  constructor(route: SplitterRoute, poolOf: (name: string) => ApiPool | undefined) {
    this.serving = route.apis.filter(({ shadow }) => !shadow);
    this.shadow = route.apis.find(({ shadow }) => shadow);
    this.poolOf = poolOf;
  }

  choose(sticky: string | undefined): ApiPool | undefined {
    return this.poolOf(
      chooseByWeight(this.serving, sticky === undefined ? Math.random() * 100 : pointOf(sticky)),
    );
  }

  /** The API that gets a copy of this request; its response is dropped. */
  chooseShadow(): ApiPool | undefined {
    if (this.shadow === undefined || Math.random() * 100 >= this.shadow.weight) return undefined;
    return this.poolOf(this.shadow.name);
  }
}

/** `point` is from 0 to below 100; the weights sum to 100. */
export function chooseByWeight(apis: readonly Weighted[], point: number): string {
  let upTo = 0;
  for (const { name, weight } of apis) {
    upTo += weight;
    if (point < upTo) return name;
  }
  return apis.at(-1)!.name;
}

/** The same point for the same text; different texts spread evenly. */
export function pointOf(sticky: string): number {
  return (createHash("sha256").update(sticky).digest().readUInt32BE(0) / 2 ** 32) * 100;
}
