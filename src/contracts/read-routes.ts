/**
 * Reads a route snapshot, or a change of one, item by item. One unreadable item does not affect the others. What did
 * not change is not read again, and stays the same object.
 */
import type * as z from "zod";
import {
  type AddressRoute,
  apiRouteSchema,
  capabilityRouteSchema,
  changeSchema,
  isNewer,
  type KeyRoute,
  keyRouteSchema,
  NO_ROUTES,
  type RefusedRoute,
  type RouteChange,
  type RouteSnapshot,
  snapshotSchema,
  splitterRouteSchema,
  stampSchema,
} from "./routes.ts";

type Refused = readonly RefusedRoute[];

/** A snapshot, and its items that could not be read. */
export interface ReadRoutes {
  snapshot: RouteSnapshot;
  refused: Record<"routes" | "keys" | "capabilities", Refused>;
}

export const NOTHING_READ: ReadRoutes = {
  snapshot: NO_ROUTES,
  refused: { routes: [], keys: [], capabilities: [] },
};

/** This is a change of another snapshot. Only a whole snapshot helps. */
export class UnknownBase extends Error {}

/** The admin token is always among the keys. */
const ONLY_ADMIN = 1;

/**
 * Reads a snapshot, or a change of `before`. An API that cannot be read keeps its route of `before`, as do those of
 * `missing`. A key that cannot be read permits nothing. Returns `before` if the value is not newer. Throws `UnknownBase`
 * for a change of another snapshot, and an error if the value is neither.
 */
export function readRoutes(value: unknown, before: ReadRoutes, missing: Refused = []): ReadRoutes {
  const base = before.snapshot;
  if (!isNewer(parse(stampSchema, value), base)) return before;
  const { epoch, version, since, has_keys, routes, keys, capabilities } = changeOf(value);
  if (since !== undefined && (base.epoch !== epoch || base.version !== since))
    throw new UnknownBase(`this changes version ${since}, but version ${base.version} is in use`);
  // A kept route does not say whether it was open by its configuration or because there was no key. So the first key
  // closes it.
  const isFirstKey = has_keys && !base.has_keys;
  const { refused: ofRoutes, ...addresses } = routes
    ? readAddresses(routes, before, missing, isFirstKey)
    : sameAddresses(before, isFirstKey);
  const newKeys = keys && readKeys(keys, before, since === undefined);
  const newCapabilities = capabilities && readItems(capabilityRouteSchema, capabilities);
  return {
    snapshot: {
      ...{ epoch, version, has_keys },
      ...addresses,
      keys: newKeys?.items ?? base.keys,
      capabilities: newCapabilities?.items ?? base.capabilities,
    },
    refused: {
      routes: ofRoutes,
      keys: newKeys?.refused ?? before.refused.keys,
      capabilities: newCapabilities?.refused ?? before.refused.capabilities,
    },
  };
}

/** A whole snapshot is a change of nothing. */
function changeOf(value: unknown): Omit<RouteChange, "since"> & { since?: number } {
  if (typeof value === "object" && value !== null && "since" in value) return parse(changeSchema, value);
  const { apis, splitters, keys, has_keys, ...rest } = parse(snapshotSchema, value);
  return {
    ...rest,
    has_keys: has_keys ?? keys.length > ONLY_ADMIN,
    routes: { apis, splitters },
    keys: { gone: [], put: keys },
  };
}

function readAddresses(
  lists: NonNullable<RouteChange["routes"]>,
  { snapshot }: ReadRoutes,
  missing: Refused,
  isFirstKey: boolean,
) {
  const apis = readItems(apiRouteSchema, lists.apis);
  const splitters = readItems(splitterRouteSchema, lists.splitters);
  const refused = [...missing, ...apis.refused, ...splitters.refused];
  const names = new Set(refused.map(({ name }) => name));
  const keptOf = <Route extends AddressRoute>(routes: readonly Route[]) =>
    routes.filter(({ name }) => names.has(name)).map((route) => (isFirstKey ? closed(route) : route));
  // Kept routes go first: if another API has their address by now, its route wins.
  return {
    refused,
    apis: [...keptOf(snapshot.apis), ...apis.items],
    splitters: [...keptOf(snapshot.splitters), ...splitters.items],
  };
}

function sameAddresses(
  { snapshot: { apis, splitters }, refused: { routes: refused } }: ReadRoutes,
  isFirstKey: boolean,
) {
  if (!isFirstKey || refused.length === 0) return { refused, apis, splitters };
  const names = new Set(refused.map(({ name }) => name));
  const close = <Route extends AddressRoute>(route: Route) => (names.has(route.name) ? closed(route) : route);
  return { refused, apis: apis.map(close), splitters: splitters.map(close) };
}

function closed<Route extends AddressRoute>(route: Route): Route {
  return { ...route, needs_key: true };
}

/** Keys that are as before are not read again, also those of a whole snapshot. */
function readKeys(
  { gone, put }: NonNullable<RouteChange["keys"]>,
  { snapshot, refused }: ReadRoutes,
  isWhole: boolean,
) {
  const ids = new Set([...gone, ...put.map(idOf)]);
  const stays = (id: string) => !isWhole && !ids.has(id);
  const known = new Map(isWhole ? snapshot.keys.map((key) => [key.id, key]) : []);
  const read = readItems(keyRouteSchema, put, (value) => {
    const key = known.get(idOf(value));
    return key !== undefined && isSameKey(key, value as KeyRoute) ? key : undefined;
  });
  return {
    items: [...snapshot.keys.filter(({ id }) => stays(id)), ...read.items],
    refused: [...refused.keys.filter(({ name }) => stays(name)), ...read.refused],
  };
}

function idOf(value: unknown): string {
  const { name, id } = (value ?? {}) as { name?: unknown; id?: unknown };
  return String(name ?? id);
}

/** Whether two keys are the same in all that a gateway reads. */
export function isSameKey(one: KeyRoute, other: KeyRoute): boolean {
  return (Object.keys(keyRouteSchema.shape) as (keyof KeyRoute)[]).every((field) =>
    field === "rate"
      ? one.rate?.requests === other.rate?.requests && one.rate?.seconds === other.rate?.seconds
      : one[field] === other[field],
  );
}

function readItems<Item>(
  schema: z.ZodType<Item>,
  values: readonly unknown[],
  knownOf: (value: unknown) => Item | undefined = () => undefined,
): { items: Item[]; refused: RefusedRoute[] } {
  const refused: RefusedRoute[] = [];
  const items = values.flatMap((value) => {
    const known = knownOf(value);
    if (known !== undefined) return [known];
    const read = schema.safeParse(value);
    if (read.success) return [read.data];
    refused.push({ name: idOf(value), detail: faultOf(read.error) });
    return [];
  });
  return { items, refused };
}

function parse<Value>(schema: z.ZodType<Value>, value: unknown): Value {
  const read = schema.safeParse(value);
  if (!read.success) throw new Error(faultOf(read.error));
  return read.data;
}

function faultOf({ issues: [issue] }: z.ZodError): string {
  return `${issue!.path.join(".")}: ${issue!.message}`;
}
