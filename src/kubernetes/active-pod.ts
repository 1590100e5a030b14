/**
 * The label of the active server's pod, by which the Service of `quern export kubernetes --state` finds it. Each server
 * labels its own pod when it takes the database, and removes the label from all others; one that waits removes its own.
 * The cluster may be away: both are tried until they succeed. A former server's change may arrive late, so that the
 * active one reads the labels from time to time (docs/decisions/0038-servers-of-a-cluster.md).
 */
import { inBackground } from "../base/boundary.ts";
import { delay } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import {
  LABEL_CHECK_MS,
  LABEL_PAUSE_FIRST_MS,
  LABEL_PAUSE_MAX_MS,
} from "../contracts/limits/kubernetes/api-server.ts";
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
  /** About how often the active server reads the labels. The default is LABEL_CHECK_MS. */
  checkMs?: number;
}

interface Wish {
  /** `confirmTurn` throws if there is a newer wish. */
  work: (confirmTurn: () => void) => Promise<void>;
  /** About how long after a success it is done again. Without it, one success is enough. */
  againMs?: number;
}

export class ActivePod {
  private readonly options: ActivePodOptions;
  /** Of the newest wish: a former one is not tried again. */
  private turn = 0;
  /** The latest attempt. The next one waits for it, because two changes at the same time have no order. */
  private latest: Promise<boolean> = Promise.resolve(true);
  private isStopped = false;
  private hasTold = false;

  constructor(options: ActivePodOptions) {
    this.options = options;
  }

  /** This server has the database, as `confirmOwner` says: it rejects if another one has it. Returns at once. */
  take(confirmOwner: () => Promise<void>): void {
    const { checkMs = LABEL_CHECK_MS } = this.options;
    const work = (confirmTurn: () => void) => this.keepAlone(() => confirmOwner().then(confirmTurn));
    this.bring({ work, againMs: checkMs });
  }

  /** Another server has the database. Returns at once. */
  leave(): void {
    this.bring({ work: () => this.label(this.options.pod, null) });
  }

  /** Nothing is tried any more, nor begun. */
  stop(): void {
    this.isStopped = true;
    this.turn++;
    this.options.client.close();
  }

  private bring(wish: Wish): void {
    if (!this.isStopped) inBackground(this.repeat(++this.turn, wish));
  }

  private async repeat(turn: number, wish: Wish): Promise<void> {
    const { againMs } = wish;
    let pauseMs = LABEL_PAUSE_FIRST_MS;
    while (turn === this.turn) {
      this.latest = this.latest.then(() => this.attempt(turn, wish));
      const isDone = await this.latest;
      if (isDone && againMs === undefined) return;
      await delay(isDone ? againMs! * (0.75 + Math.random() / 2) : pauseMs);
      pauseMs = isDone ? LABEL_PAUSE_FIRST_MS : Math.min(LABEL_PAUSE_MAX_MS, 2 * pauseMs);
    }
  }

  /** Whether it succeeded. Never rejects. */
  private async attempt(turn: number, { work }: Wish): Promise<boolean> {
    const confirmTurn = () => {
      if (turn !== this.turn) throw new Error("there is a newer wish");
    };
    try {
      confirmTurn();
      await work(confirmTurn);
      this.hasTold = false;
      return true;
    } catch (err) {
      if (turn === this.turn) this.tell(err);
      return false;
    }
  }

  /** Its own first, so that the Service always has one. */
  private async keepAlone(confirm: () => Promise<void>): Promise<void> {
    const { pod } = this.options;
    const labelled = await this.labelled();
    if (labelled.get(pod) !== "true") await this.label(pod, "true", confirm);
    for (const other of labelled.keys()) if (other !== pod) await this.label(other, null, confirm);
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

  /** The pods with the label, and its values. */
  private async labelled(): Promise<Map<string, string | undefined>> {
    const { client, namespace } = this.options;
    const query = { labelSelector: `${SERVERS},${ACTIVE_LABEL}` };
    const { items } = await client.get<{ items: KubernetesObject[] }>(pathOf("Pod", namespace), query);
    return new Map(items.map(({ metadata }) => [metadata.name, metadata.labels?.[ACTIVE_LABEL]]));
  }

  /** A pod that is gone needs no label. `confirm` is called before each change, because a former one may take long. */
  private async label(pod: string, value: string | null, confirm?: () => Promise<void>): Promise<void> {
    const { client, namespace } = this.options;
    await confirm?.();
    const labels = { [ACTIVE_LABEL]: value };
    await client.merge(pathOf("Pod", namespace, pod), { metadata: { labels } }).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    });
  }
}
