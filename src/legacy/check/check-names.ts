/** Checks, purely, which resources an application has: one app, an environment, and names that mean one resource each. */
import type { ResourceKind } from "../../contracts/config/app-resources.ts";
import { type Located, ofKind, type ResourceFault } from "./load-app.ts";

/** Kinds that share their names. */
const NAME_SPACES: readonly (readonly ResourceKind[])[] = [
  ["environment"],
  ["raw_column", "transformed_column"],
  ["constant", "aggregate"],
  ["aggregator"],
  ["transformer"],
  ["model"],
  ["api"],
];

export type LocatedFault = ResourceFault & { located: Located };

export function nameFaults(resources: readonly Located[]): LocatedFault[] {
  return [...numberFaults(resources), ...NAME_SPACES.flatMap((kinds) => duplicates(resources, kinds))];
}

function* numberFaults(resources: readonly Located[]): Generator<LocatedFault> {
  const [first, ...more] = ofKind(resources, "app");
  if (first === undefined) return;
  for (const located of more)
    yield { located, path: [], detail: `there is one app only; the first is ${first.resource.name}` };
  if (ofKind(resources, "environment").length === 0)
    yield { located: first, path: [], detail: "there is no environment; define one with its data" };
}

function duplicates(resources: readonly Located[], kinds: readonly ResourceKind[]): LocatedFault[] {
  const seen = new Map<string, Located>();
  return resources
    .filter(({ resource }) => kinds.includes(resource.kind))
    .flatMap((located) => {
      const before = seen.get(located.resource.name);
      seen.set(located.resource.name, located);
      if (before === undefined) return [];
      const detail = `is used twice; the other is of the kind ${before.resource.kind}`;
      return [{ located, path: ["name"], detail }];
    });
}
