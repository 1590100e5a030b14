/**
 * The only writer of the route snapshot. It writes a file, from which a gateway starts if there is no controller, and
 * sends each snapshot to connected gateways. Epoch and version only rise, even over restarts. It publishes only what a
 * gateway can read.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { delay } from "../base/clock.ts";
import { shortageOf } from "../base/disk-full.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  type CapabilityRoute,
  NO_ROUTES,
  type RefusedRoute,
  type RouteSnapshot,
  readSnapshot,
  type SnapshotStamp,
} from "../contracts/routes.ts";

/** A gateway that takes longer to confirm is stuck. */
const EVERYWHERE_MS = 5_000;
const APPLIED_POLL_MS = 5;
const WRITE_AGAIN_MS = 1_000;

/** A connected gateway, which gets each snapshot and confirms those that it has applied. */
interface Subscriber {
  listener: (snapshot: RouteSnapshot) => void;
  /** Within the current epoch. */
  appliedVersion: number;
  /** The items that the gateway could not read. */
  refused: readonly RefusedRoute[];
}

export class RoutePublisher {
  private readonly file: string;
  private readonly onRefused: (refused: RefusedRoute) => void;
  private current: RouteSnapshot;
  private refused: readonly RefusedRoute[] = [];
  private writtenVersion = 0;
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
    this.file = file;
    this.onRefused = onRefused;
    this.current = { ...lastPublished(file), epoch, version: 0, capabilities };
  }

  get snapshot(): RouteSnapshot {
    return this.current;
  }

  /** Calls back with each later snapshot. Returns a function that ends the subscription. */
  subscribe(gateway: string, listener: (snapshot: RouteSnapshot) => void): () => void {
    const subscriber: Subscriber = { listener, appliedVersion: -1, refused: [] };
    this.subscribers.set(gateway, subscriber);
    return () => {
      if (this.subscribers.get(gateway) === subscriber) this.subscribers.delete(gateway);
    };
  }

  /** A gateway confirms the snapshot that it now uses, and reports items of the newest that it could not read. */
  applied(gateway: string, { epoch, version }: SnapshotStamp, refused: readonly RefusedRoute[]): void {
    const subscriber = this.subscribers.get(gateway);
    if (subscriber === undefined) return;
    subscriber.refused = refused;
    // A confirmation of a former controller's snapshot says nothing about this epoch.
    if (epoch === this.current.epoch)
      subscriber.appliedVersion = Math.max(subscriber.appliedVersion, version);
  }

  /** For people: the APIs that serve an older route than the deployed one. */
  get warnings(): string[] {
    const refused = [this.refused, ...[...this.subscribers.values()].map((subscriber) => subscriber.refused)];
    const texts = refused.flat().map(({ name, detail }) => `${name} keeps its last good route: ${detail}`);
    return [...new Set(texts)];
  }

  /** Publishes routes. If gateways could not read a route, its last good one stays, as for the APIs in `missing`. */
  publish(
    routes: Omit<RouteSnapshot, keyof SnapshotStamp | "capabilities">,
    missing: readonly RefusedRoute[] = [],
  ): void {
    const { epoch, version, capabilities } = this.current;
    const next = { epoch, version: version + 1, capabilities, ...routes };
    const { snapshot, refused } = readSnapshot(next, this.current, missing);
    for (const item of refused)
      if (!this.refused.some(({ name, detail }) => name === item.name && detail === item.detail))
        this.onRefused(item);
    this.refused = refused;
    this.bring(snapshot);
  }

  /** Publishes capabilities, and keeps the routes. */
  publishCapabilities(capabilities: CapabilityRoute[]): void {
    this.bring({ ...this.current, version: this.current.version + 1, capabilities });
  }

  private bring(snapshot: RouteSnapshot): void {
    this.current = snapshot;
    this.write();
    for (const { listener } of this.subscribers.values()) listener(snapshot);
  }

  /** Connected gateways do not wait for the file. If the disk is full, the file is written once there is space. */
  private write(): void {
    const { version } = this.current;
    const temporary = `${this.file}.new`;
    try {
      writeFileSync(temporary, JSON.stringify(this.current), { mode: 0o600 });
      renameSync(temporary, this.file);
      this.writtenVersion = version;
    } catch (error) {
      if (shortageOf(error) === undefined) throw error;
      setTimeout(() => version === this.current.version && this.write(), WRITE_AGAIN_MS).unref();
    }
  }

  /**
   * Resolves when every connected gateway has applied the newest snapshot. Throws `server_unavailable` if that takes
   * too long.
   */
  async waitUntilApplied(): Promise<void> {
    const { version } = this.current;
    const deadline = performance.now() + EVERYWHERE_MS;
    const isMissing = ({ appliedVersion }: Subscriber) => appliedVersion < version;
    // A gateway that starts now reads the file.
    while (this.writtenVersion < version || [...this.subscribers.values()].some(isMissing)) {
      if (performance.now() > deadline) {
        const message =
          "the change is recorded, but a gateway has not confirmed it yet; the gateway will apply it later";
        throw new ServiceError("server_unavailable", message, { retryAfterS: 1 });
      }
      await delay(APPLIED_POLL_MS);
    }
  }
}

/** The last snapshot of the previous controller. A file that cannot be read contains nothing worth keeping. */
function lastPublished(file: string): RouteSnapshot {
  try {
    return readSnapshot(JSON.parse(readFileSync(file, "utf8")), NO_ROUTES).snapshot;
  } catch {
    return NO_ROUTES;
  }
}
