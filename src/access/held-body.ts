/**
 * The bytes of the budget that one body holds while it arrives and is used. Bodies that arrive too slowly are refused.
 */
import { Interruptible } from "../base/interruptible.ts";
import { ServiceError } from "../contracts/errors.ts";
import { BODY_PACE_MS, BODY_PACE_SHARE, SMALL_BODY_BYTES } from "../contracts/limits/requests.ts";
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

  /** Throws `queue_full` if the budget is used up. */
  grow(bytes: number): void {
    if (this.isOver) return;
    if (!this.budget.reserve(bytes, this.owner, this.reserved + bytes)) throw bodiesFull();
    this.reserved += bytes;
  }

  /** Releases the bytes for good: later calls of `grow` count nothing. */
  release(): void {
    this.isOver = true;
    this.budget.release(this.reserved, this.owner);
    this.reserved = 0;
  }
}

/**
 * The parts of a body, when it is complete. Throws what `check` throws for the bytes so far, `queue_full` if the budget
 * is used up, and `body_too_slow`. The rest then stays unread. `onTaken` is called when nothing known so far speaks
 * against the body, and `onPart` for each part as it arrives.
 */
export async function collect(
  chunks: AsyncIterable<Uint8Array>,
  held: HeldBody,
  announced: number | undefined,
  check: (bytes: number) => void,
  onTaken = () => {},
  onPart: (part: Uint8Array) => void = () => {},
): Promise<Uint8Array[]> {
  check(announced ?? 0);
  // Small bodies reserve what has arrived: those that are announced and never sent would take others' bytes.
  const isAhead = announced !== undefined && announced > SMALL_BODY_BYTES;
  if (isAhead) held.grow(announced);
  onTaken();
  const parts: Uint8Array[] = [];
  let block: Buffer | undefined;
  let bytes = 0;
  const waits = new Interruptible();
  const stopWatching = watchPace(
    () => held.bytes,
    () => bytes,
    () => waits.interrupt(bodyTooSlow()),
  );
  try {
    const iterator = chunks[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await waits.wait(iterator.next());
      if (done === true) return parts;
      bytes += value.length;
      check(bytes);
      if (!isAhead) held.grow(value.length);
      onPart(value);
      block = keepPart(parts, value, block);
    }
  } finally {
    stopWatching();
  }
}

/**
 * Calls `onSlow` if a large body arrives too slowly, until the returned function is called. `held` returns its bytes of
 * the budget, `received` those that have arrived.
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

/** `came`: bytes that arrived within BODY_PACE_MS. */
export function isTooSlow(came: number, held: number): boolean {
  return held > SMALL_BODY_BYTES && came < held * BODY_PACE_SHARE;
}

export function bodiesFull(): ServiceError {
  const message =
    "the requests in progress have reached the memory limit of this process, or of one key, address or API; try again later";
  return new ServiceError("queue_full", message, { retryAfterS: 1 });
}

export function bodyTooSlow(): ServiceError {
  return new ServiceError(
    "body_too_slow",
    `a body must keep arriving: at least a fortieth of its announced bytes every ${BODY_PACE_MS / 1000} s; send it again, in smaller parts if the connection is slow`,
  );
}
