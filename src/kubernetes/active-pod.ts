/**
 * The label of the active server's pod, by which the Service of `quern export kubernetes --state` finds it. Each server
 * labels its own pod when it takes the database, and removes the label from all others; one that waits removes its own.
 * The cluster may be away: both are tried until they succeed (docs/decisions/0038-servers-of-a-cluster.md).
 */
import { inBackground } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { LABEL_PAUSE_FIRST_MS, LABEL_PAUSE_MAX_MS } from "../contracts/limits/kubernetes/api-server.ts";
import type { ApiClient } from "./api-client.ts";
import { ApiError } from "./api-error.ts";
import { type KubernetesObject, pathOf } from "./resources.ts";

/** `quern export kubernetes` writes the same one (src/cli/kubernetes/manifest.ts). */
export const ACTIVE_LABEL = "quern.dev/active";
const SERVERS = "app.kubernetes.io/name=quern";

export interface ActivePodOptions {
  client: ApiClient;
  /** That of the server's pod. */
  namespace: string;
  /** The name of the server's pod. */
  pod: string;
  log: Log;
}

export class ActivePod {
  private readonly options: ActivePodOptions;
  /** Of the newest wish: a former one is not tried again. */
  private turn = 0;
  private hasTold = false;

  constructor(options: ActivePodOptions) {
    this.options = options;
  }

  /** This server has the database, as `confirmOwner` says: it rejects if another one has it. Returns at once. */
  take(confirmOwner: () => Promise<void>): void {
    this.bring(async () => {
      await confirmOwner();
      await this.label(this.options.pod, "true");
      for (const pod of await this.labelled()) if (pod !== this.options.pod) await this.label(pod, null);
    });
  }

  /** Another server has the database. Returns at once. */
  leave(): void {
    this.bring(() => this.label(this.options.pod, null));
  }

  /** Nothing is tried any more. */
  stop(): void {
    this.turn++;
    this.options.client.close();
  }

  private bring(work: () => Promise<void>): void {
    const turn = ++this.turn;
    inBackground(this.untilDone(turn, work));
  }

  private async untilDone(turn: number, work: () => Promise<void>): Promise<void> {
    let pauseMs = LABEL_PAUSE_FIRST_MS;
    while (turn === this.turn) {
      try {
        await work();
        this.hasTold = false;
        return;
      } catch (err) {
        if (turn !== this.turn) return;
        this.tell(err);
      }
      await delay(pauseMs);
      pauseMs = Math.min(LABEL_PAUSE_MAX_MS, 2 * pauseMs);
    }
  }

  /** Once, until it works again. */
  private tell(err: unknown): void {
    if (!this.hasTold)
      this.options.log.warn(
        { event: "cluster_failed", err },
        "the label of the active server's pod could not be changed; tried again",
      );
    this.hasTold = true;
  }

  private async labelled(): Promise<string[]> {
    const { client, namespace } = this.options;
    const query = { labelSelector: `${SERVERS},${ACTIVE_LABEL}` };
    const { items } = await client.get<{ items: KubernetesObject[] }>(pathOf("Pod", namespace), query);
    return items.map(({ metadata }) => metadata.name);
  }

  /** A pod that is gone needs no label. */
  private async label(pod: string, value: string | null): Promise<void> {
    const { client, namespace } = this.options;
    const labels = { [ACTIVE_LABEL]: value };
    await client.merge(pathOf("Pod", namespace, pod), { metadata: { labels } }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    });
  }
}
