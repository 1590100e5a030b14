/** The bytes of the budget that one body has while it comes, and until it is needed no more; a body that comes too slowly is told. */
import { ServiceError } from "../contracts/errors.ts";
import { BODY_PACE_MS, BODY_PACE_SHARE, SMALL_BODY_BYTES } from "../contracts/limits.ts";
import type { BodyBudget, BodyOwner } from "./body-budget.ts";
import { keepPart } from "./body-parts.ts";

export class HeldBody {
  private readonly budget: BodyBudget;
  private readonly owner: BodyOwner;
  private reserved = 0;
  private isOver = false;

  constructor(budget: BodyBudget, owner: BodyOwner) {
    this.budget = budget;
    this.owner = owner;
  }

  get bytes(): number {
    return this.reserved;
  }

  /** Throws `queue_full` where there is no room. */
  grow(bytes: number): void {
    if (this.isOver) return;
    if (!this.budget.reserve(bytes, this.owner, this.reserved + bytes)) throw bodiesFull();
    this.reserved += bytes;
  }

  /** For good: what comes after is not counted. */
  release(): void {
    this.isOver = true;
    this.budget.release(this.reserved, this.owner);
    this.reserved = 0;
  }
}

/**
 * The parts of a body, once it is whole. Throws what `check` throws of its bytes so far, `queue_full` where there is no room for it, and
 * `body_too_slow`. The rest is left unread then. `onTaken`: nothing that is known of it by now speaks against it.
 */
export async function collect(
  chunks: AsyncIterable<Uint8Array>,
  held: HeldBody,
  announced: number | undefined,
  check: (bytes: number) => void,
  onTaken = () => {},
): Promise<Uint8Array[]> {
  check(announced ?? 0);
  if (announced !== undefined) held.grow(announced);
  onTaken();
  const parts: Uint8Array[] = [];
  let block: Buffer | undefined;
  let bytes = 0;
  let stopWatching = () => {};
  const slow = new Promise<never>((_, reject) => {
    const received = () => bytes;
    stopWatching = watchPace(
      () => held.bytes,
      received,
      () => reject(bodyTooSlow()),
    );
  });
  try {
    const iterator = chunks[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await Promise.race([iterator.next(), slow]);
      if (done === true) return parts;
      bytes += value.length;
      check(bytes);
      if (announced === undefined) held.grow(value.length);
      block = keepPart(parts, value, block);
    }
  } finally {
    stopWatching();
  }
}

/**
 * Watches over a body that is coming, where it holds more than a small one, until the function that it returns is called.
 * `held` are its bytes of the budget, `received` those that are here.
 */
export function watchPace(held: () => number, received: () => number, onSlow: () => void): () => void {
  let before = received();
  const timer = setInterval(() => {
    const now = received();
    if (isTooSlow(now - before, held())) {
      clearInterval(timer);
      onSlow();
    }
    before = now;
  }, BODY_PACE_MS).unref();
  return () => clearInterval(timer);
}

/** `came`: within BODY_PACE_MS. */
export function isTooSlow(came: number, held: number): boolean {
  return held > SMALL_BODY_BYTES && came < held * BODY_PACE_SHARE;
}

export function bodiesFull(): ServiceError {
  const message =
    "the bodies of the requests under way are as many bytes as this process holds, or as it holds for one key, address or API; try again later";
  return new ServiceError("queue_full", message, { retryAfterS: 1 });
}

export function bodyTooSlow(): ServiceError {
  return new ServiceError(
    "body_too_slow",
    `a large body must go on coming: of what it was announced with, a fortieth at least in each ${BODY_PACE_MS / 1000} s; send it again, in smaller parts where the line is slow`,
  );
}
