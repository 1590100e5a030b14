/**
 * Which queue of SQS gets its next messages. Queues take turns, those of each API apart from those of others: a queue
 * with many messages, or an API with many queues that do not respond, holds up no other. Pure.
 */
import {
  SQS_PAUSE_FIRST_MS,
  SQS_PAUSE_MAX_MS,
  SQS_PAUSE_OF_A_QUEUE_MS,
  SQS_PAUSE_SHORT_MS,
  SQS_QUEUES_AT_ONCE,
  SQS_QUEUES_OF_AN_API_AT_ONCE,
} from "../../contracts/limits/jobs.ts";

/** A queue, and an API whose jobs have messages for it. */
export interface NamedQueue {
  queue: string;
  api: string;
}

interface Known {
  api: ApiTurns;
  state: "ready" | "sending" | "paused";
  /** More messages came while it was sending. */
  hasMore: boolean;
  /** Its last pause; 0 if it responded. */
  pauseMs: number;
  untilMs: number;
}

interface ApiTurns {
  name: string;
  sending: number;
  paused: number;
  /** In the order of their turns. */
  ready: Set<string>;
}

export class QueueTurns {
  private readonly known = new Map<string, Known>();
  /** APIs with a known queue, in the order of their turns. */
  private readonly apis = new Map<string, ApiTurns>();
  private sending = 0;

  /** There may be messages for this queue. A pause of the queue continues. */
  add({ queue, api }: NamedQueue): void {
    const known = this.known.get(queue);
    if (known !== undefined) {
      known.hasMore = true;
      return;
    }
    const turns = this.apis.get(api) ?? { name: api, sending: 0, paused: 0, ready: new Set() };
    this.apis.set(api, turns);
    this.known.set(queue, { api: turns, state: "ready", hasMore: false, pauseMs: 0, untilMs: 0 });
    turns.ready.add(queue);
  }

  /** The queue whose turn it is; undefined if none is ready, or enough are sending. */
  next(): string | undefined {
    if (this.sending >= SQS_QUEUES_AT_ONCE) return undefined;
    for (const turns of this.apis.values()) {
      const [queue] = turns.ready;
      if (queue === undefined || turns.sending >= SQS_QUEUES_OF_AN_API_AT_ONCE) continue;
      this.begin(queue, turns);
      return queue;
    }
    return undefined;
  }

  /** Some messages were sent, and there may be more. */
  sent(queue: string): void {
    const known = this.known.get(queue)!;
    known.pauseMs = 0;
    this.end(known);
    this.makeReady(queue, known);
  }

  /** The queue has no messages. */
  isEmpty(queue: string): void {
    const known = this.known.get(queue)!;
    if (known.hasMore) return this.sent(queue);
    this.end(known);
    this.known.delete(queue);
    this.forget(known.api);
  }

  /** The queue did not respond. Returns whether it responded before. */
  pause(queue: string, nowMs: number): boolean {
    const known = this.known.get(queue)!;
    const isFirst = known.pauseMs === 0;
    this.end(known);
    known.state = "paused";
    known.api.paused++;
    const shortMs = isFirst ? SQS_PAUSE_FIRST_MS : Math.min(2 * known.pauseMs, SQS_PAUSE_SHORT_MS);
    // With one queue, or a few, this is the usual pause: the more there are, the less often each one is tried.
    const manyMs = known.api.paused * SQS_PAUSE_OF_A_QUEUE_MS;
    known.pauseMs = manyMs <= SQS_PAUSE_SHORT_MS ? shortMs : Math.min(manyMs, SQS_PAUSE_MAX_MS);
    known.untilMs = nowMs + known.pauseMs;
    return isFirst;
  }

  /** Ends the pauses that are over. Returns when the next one is; undefined if no queue is paused. */
  resume(nowMs: number): number | undefined {
    let nextMs: number | undefined;
    for (const [queue, known] of this.known) {
      if (known.state !== "paused") continue;
      if (known.untilMs > nowMs) {
        nextMs = Math.min(nextMs ?? known.untilMs, known.untilMs);
        continue;
      }
      known.api.paused--;
      this.makeReady(queue, known);
    }
    return nextMs;
  }

  private begin(queue: string, turns: ApiTurns): void {
    const known = this.known.get(queue)!;
    known.state = "sending";
    known.hasMore = false;
    turns.ready.delete(queue);
    turns.sending++;
    this.sending++;
    // This API comes last now.
    this.apis.delete(turns.name);
    this.apis.set(turns.name, turns);
  }

  private end({ api }: Known): void {
    api.sending--;
    this.sending--;
  }

  private makeReady(queue: string, known: Known): void {
    known.state = "ready";
    known.api.ready.add(queue);
  }

  private forget(turns: ApiTurns): void {
    if (turns.sending + turns.paused + turns.ready.size === 0) this.apis.delete(turns.name);
  }
}
