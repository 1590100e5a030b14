/**
 * Keeps a view of all objects of a kind: lists them, then follows the changes. The view is the cluster's truth, at most
 * `silentMaxMs` and a pause old, whatever happens to connections. Requests are bounded: one at a time, with a pause
 * before each that grows while they fail.
 *
 * The view goes forward in time only: lists are consistent reads, and a watch continues after the last change.
 */
import { setTimeout as wait } from "node:timers/promises";
import { contain } from "../base/boundary.ts";
import type { Service } from "../base/service.ts";
import { CLUSTER_PAGE_OBJECTS, CLUSTER_SILENT_MAX_MS } from "../contracts/limits/kubernetes/api-server.ts";
import type { ApiClient, RequestLimits } from "./api-client.ts";
import { apiError } from "./api-error.ts";
import { nextWatch, WATCH_TIMING, type WatchTiming } from "./next-watch.ts";
import type { KubernetesObject } from "./resources.ts";

interface WatchedList<T> {
  metadata: { resourceVersion: string; continue?: string };
  items: T[];
}

interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T;
}

export interface WatchedOptions<T> {
  client: ApiClient;
  /** See `pathOf`. */
  path: string;
  labelSelector?: string;
  /** An object is new or has changed, or is gone (`object` is undefined). */
  onChange: (name: string, object: T | undefined) => void;
  /** A list or a watch has failed, and is tried again. */
  onFailure?: (error: Error) => void;
  timing?: WatchTiming;
}

export class ListAndWatch<T extends KubernetesObject> implements Service {
  private readonly options: WatchedOptions<T>;
  private readonly timing: WatchTiming;
  private readonly objects = new Map<string, T>();
  private readonly stopping = new AbortController();
  private version: string | undefined;
  private running: Promise<void> = Promise.resolve();
  private onListed = () => {};
  /** Resolves after the first list. */
  readonly listed = new Promise<void>((resolve) => {
    this.onListed = resolve;
  });

  constructor(options: WatchedOptions<T>) {
    this.options = options;
    this.timing = options.timing ?? WATCH_TIMING;
  }

  /** The objects by name. */
  get view(): ReadonlyMap<string, T> {
    return this.objects;
  }

  async start(): Promise<void> {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(): Promise<void> {
    let failures = 0;
    while (!this.stopping.signal.aborted) {
      const { error, livedMs } = await this.listOrWatch();
      if (this.stopping.signal.aborted) return;
      if (error !== undefined) this.tell(error);
      const next = nextWatch({ error, livedMs, failures, chance: Math.random() }, this.timing);
      failures = next.failures;
      if (next.listAgain) this.version = undefined;
      await wait(next.pauseMs, undefined, { signal: this.stopping.signal }).catch(() => {});
    }
  }

  /** Never throws. */
  private async listOrWatch(): Promise<{ error: unknown; livedMs: number }> {
    let beganMs = performance.now();
    try {
      this.version ??= await this.list();
      beganMs = performance.now();
      await this.watch(this.version);
      return { error: undefined, livedMs: performance.now() - beganMs };
    } catch (error) {
      return { error, livedMs: this.version === undefined ? 0 : performance.now() - beganMs };
    }
  }

  /** Resolves to the version of the view. */
  private async list(): Promise<string> {
    const { client, path, labelSelector } = this.options;
    const found = new Map<string, T>();
    let page: WatchedList<T> | undefined;
    do {
      const query = { labelSelector, limit: CLUSTER_PAGE_OBJECTS, continue: page?.metadata.continue };
      page = await client.get<WatchedList<T>>(path, query, this.limits(CLUSTER_SILENT_MAX_MS));
      for (const object of page.items) found.set(object.metadata.name, object);
    } while (page.metadata.continue);
    for (const name of [...this.objects.keys()]) if (!found.has(name)) this.change(name, undefined);
    for (const [name, object] of found) {
      const isSame = this.objects.get(name)?.metadata.resourceVersion === object.metadata.resourceVersion;
      if (!isSame) this.change(name, object);
    }
    this.onListed();
    return page.metadata.resourceVersion;
  }

  private watch(resourceVersion: string): Promise<void> {
    const { client, path, labelSelector } = this.options;
    const { watchedMs } = this.timing;
    const query = {
      labelSelector,
      resourceVersion,
      allowWatchBookmarks: "true",
      timeoutSeconds: Math.ceil((watchedMs * (1 + Math.random())) / 1_000),
    };
    const onEvent = (event: unknown) => this.take(event as WatchEvent<T>);
    return client.watch(path, query, onEvent, this.limits(Number.POSITIVE_INFINITY));
  }

  private limits(silentMaxMs: number): RequestLimits {
    return { signal: this.stopping.signal, silentMaxMs: Math.min(silentMaxMs, this.timing.silentMaxMs) };
  }

  /** Throws the error of an ERROR event. */
  private take({ type, object }: WatchEvent<T>): void {
    if (type === "ERROR") throw apiError(500, JSON.stringify(object), undefined);
    const { name, resourceVersion } = object.metadata;
    if (type !== "BOOKMARK") this.change(name, type === "DELETED" ? undefined : object);
    this.version = resourceVersion;
  }

  private change(name: string, object: T | undefined): void {
    if (object === undefined) this.objects.delete(name);
    else this.objects.set(name, object);
    contain("a change in the cluster", () => this.options.onChange(name, object));
  }

  private tell(error: unknown): void {
    const { onFailure = () => {} } = this.options;
    contain("a failed watch", () => onFailure(error instanceof Error ? error : new Error(String(error))));
  }
}
