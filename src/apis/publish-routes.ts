/**
 * The only writer of the route snapshot. It writes a file, from which a gateway starts if there is no controller. A
 * connected gateway gets the whole snapshot once, then only what changes, so a change costs no more if there are many
 * keys. Epoch and version only rise, even over restarts. It publishes only what a gateway can read.
 */
import { readFileSync } from "node:fs";
import { delay } from "../base/clock.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import { isSameKey, NOTHING_READ, type ReadRoutes, readRoutes } from "../contracts/read-routes.ts";
import type {
  CapabilityRoute,
  KeyRoute,
  RefusedRoute,
  RouteChange,
  RouteSnapshot,
  SnapshotStamp,
} from "../contracts/routes.ts";
import { RouteFile } from "./route-file.ts";

/** A gateway that takes longer to confirm is stuck. */
const EVERYWHERE_MS = 5_000;
const APPLIED_POLL_MS = 5;

/** A connected gateway, which gets each change and confirms those that it has applied. */
interface Subscriber {
  listener: (line: string) => void;
  /** Within the current epoch. */
  appliedVersion: number;
  /** The items that the gateway could not read. */
  refused: readonly RefusedRoute[];
}

type Published = Omit<RouteSnapshot, keyof SnapshotStamp | "capabilities">;

export class RoutePublisher implements Service {
  private readonly onRefused: (refused: RefusedRoute) => void;
  private current: ReadRoutes;
  /** The routes as they were given last, as text. */
  private given = "";
  private refused: readonly RefusedRoute[] = [];
  /** The lists of the snapshot as JSON: each is made again only when it changes. */
  private texts: Record<"routes" | "keys" | "capabilities", Buffer>;
  private readonly file: RouteFile;
  /** Keyed by the gateway's id. */
  private readonly subscribers = new Map<string, Subscriber>();

  /**
   * `onRefused` is called for a route that is not published because no gateway could read it. `capabilities` are those
   * of workers that are still running.
   */
  constructor(
    file: string,
    epoch: number,
    onRefused: (refused: RefusedRoute) => void,
    capabilities: CapabilityRoute[] = [],
  ) {
    this.onRefused = onRefused;
    const snapshot = { ...lastPublished(file), epoch, version: 0, capabilities };
    this.current = { ...NOTHING_READ, snapshot };
    this.texts = {
      routes: routesText(snapshot),
      keys: textOf("keys", snapshot.keys),
      capabilities: textOf("capabilities", capabilities),
    };
    this.file = new RouteFile(file, () => ({
      version: this.current.snapshot.version,
      pieces: this.wholePieces(),
    }));
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.file.flush();
  }

  /** The whole snapshot as a line, for a gateway that connects. */
  get whole(): string {
    return `${this.wholePieces().join("")}\n`;
  }

  /** Calls back with each later change, as a line. Returns a function that ends the subscription. */
  subscribe(gateway: string, listener: (line: string) => void): () => void {
    const subscriber: Subscriber = { listener, appliedVersion: -1, refused: [] };
    this.subscribers.set(gateway, subscriber);
    return () => {
      if (this.subscribers.get(gateway) === subscriber) this.subscribers.delete(gateway);
    };
  }

  /** Whether an API has a route already, also from the former controller. */
  has(name: string): boolean {
    return this.current.snapshot.apis.some((route) => route.name === name);
  }

  /** How many gateways are connected. */
  get connected(): number {
    return this.subscribers.size;
  }

  /** A gateway confirms the snapshot that it now uses, and reports items of the newest that it could not read. */
  applied(gateway: string, { epoch, version }: SnapshotStamp, refused: readonly RefusedRoute[]): void {
    const subscriber = this.subscribers.get(gateway);
    if (!subscriber) return;
    subscriber.refused = refused;
    // A confirmation of a former controller's snapshot says nothing about this epoch.
    if (epoch === this.current.snapshot.epoch)
      subscriber.appliedVersion = Math.max(subscriber.appliedVersion, version);
  }

  /** For people: the APIs that serve an older route than the deployed one. */
  get warnings(): string[] {
    const refused = [this.refused, ...[...this.subscribers.values()].map((subscriber) => subscriber.refused)];
    const texts = refused.flat().map(({ name, detail }) => `${name} keeps its last good route: ${detail}`);
    return [...new Set(texts)];
  }

  /** If gateways could not read a route, its last good one stays, as for the APIs in `missing` and `unknown`. */
  publish(published: Published, missing: readonly RefusedRoute[] = [], unknown: string[] = []): void {
    const { apis, splitters, keys, has_keys } = published;
    const change: RouteChange = {
      ...this.nextStamp(),
      has_keys,
      ...changedKeys(this.current.snapshot, keys),
    };
    const given = JSON.stringify([apis, splitters, missing, unknown]);
    if (given !== this.given) change.routes = { apis, splitters };
    const kept = unknown.map((name) => ({ name, detail: "" }));
    const read = readRoutes(change, this.current, [...missing, ...kept]);
    this.given = given;
    const refused = Object.values(read.refused).flat();
    this.report(refused.filter(({ name }) => !unknown.includes(name)));
    this.bring(read);
    this.file.write();
  }

  /** Publishes capabilities, and keeps the routes. Those who wait for them wait until they are in the file. */
  publishCapabilities(capabilities: CapabilityRoute[]): void {
    const { since: _, ...stamp } = this.nextStamp();
    this.bring({ ...this.current, snapshot: { ...this.current.snapshot, ...stamp, capabilities } });
    this.file.writeSoon();
  }

  private nextStamp() {
    const { epoch, version } = this.current.snapshot;
    return { epoch, version: version + 1, since: version };
  }

  private report(refused: readonly RefusedRoute[]): void {
    for (const item of refused)
      if (!this.refused.some(({ name, detail }) => name === item.name && detail === item.detail))
        this.onRefused(item);
    this.refused = refused;
  }

  /** Sends what changed. Connected gateways do not wait for the file. */
  private bring(read: ReadRoutes): void {
    const { snapshot: before } = this.current;
    const { snapshot } = read;
    const { epoch, version, has_keys, apis, splitters, capabilities } = snapshot;
    const change: RouteChange = { epoch, version, since: before.version, has_keys };
    if (apis !== before.apis || splitters !== before.splitters) {
      change.routes = { apis, splitters };
      this.texts.routes = routesText(snapshot);
    }
    if (snapshot.keys !== before.keys) {
      change.keys = {
        gone: without(before.keys, snapshot.keys).map(({ id }) => id),
        put: without(snapshot.keys, before.keys),
      };
      this.texts.keys = textOf("keys", snapshot.keys);
    }
    if (capabilities !== before.capabilities) {
      change.capabilities = capabilities;
      this.texts.capabilities = textOf("capabilities", capabilities);
    }
    this.current = read;
    const line = `${JSON.stringify(change)}\n`;
    for (const { listener } of this.subscribers.values()) listener(line);
  }

  private wholePieces(): Buffer[] {
    const { epoch, version, has_keys } = this.current.snapshot;
    const head = JSON.stringify({ epoch, version, has_keys }).slice(0, -1);
    const { routes, keys, capabilities } = this.texts;
    return [Buffer.from(head), routes, keys, capabilities, Buffer.from("}")];
  }

  /**
   * Resolves when every connected gateway has applied the newest snapshot, and at least `gateways` are connected: one
   * that is not may serve by an older snapshot. Throws `server_unavailable` if that takes too long.
   */
  async waitUntilApplied(gateways = 0): Promise<void> {
    const { version } = this.current.snapshot;
    const deadline = performance.now() + EVERYWHERE_MS;
    const isMissing = ({ appliedVersion }: Subscriber) => appliedVersion < version;
    // A gateway that starts now reads the file.
    const isEverywhere = () =>
      this.file.writtenVersion >= version &&
      this.connected >= gateways &&
      ![...this.subscribers.values()].some(isMissing);
    while (!isEverywhere()) {
      if (performance.now() > deadline) {
        const message =
          "the change is recorded, but a gateway has not confirmed it yet; the gateway will apply it later";
        throw new ServiceError("server_unavailable", message, { retryAfterS: 1 });
      }
      await delay(APPLIED_POLL_MS);
    }
  }
}

/** The keys that differ from the published ones; nothing if none does. */
function changedKeys(published: RouteSnapshot, keys: readonly KeyRoute[]): Pick<RouteChange, "keys"> {
  const former = new Map(published.keys.map((key) => [key.id, key]));
  const put: KeyRoute[] = [];
  for (const key of keys) {
    const known = former.get(key.id);
    former.delete(key.id);
    if (known === undefined || !isSameKey(known, key)) put.push(key);
  }
  const gone = [...former.keys()];
  return gone.length === 0 && put.length === 0 ? {} : { keys: { gone, put } };
}

function without(keys: readonly KeyRoute[], others: readonly KeyRoute[]): KeyRoute[] {
  const known = new Set(others);
  return keys.filter((key) => !known.has(key));
}

/** A list as a part of the snapshot's JSON. */
function textOf(name: string, list: unknown): Buffer {
  return Buffer.from(`,"${name}":${JSON.stringify(list)}`);
}

function routesText({ apis, splitters }: RouteSnapshot): Buffer {
  return Buffer.concat([textOf("apis", apis), textOf("splitters", splitters)]);
}

/** The last snapshot of the previous controller. A file that cannot be read contains nothing worth keeping. */
function lastPublished(file: string): RouteSnapshot {
  try {
    return readRoutes(JSON.parse(readFileSync(file, "utf8")), NOTHING_READ).snapshot;
  } catch {
    return NOTHING_READ.snapshot;
  }
}
