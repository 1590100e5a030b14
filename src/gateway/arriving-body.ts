/**
 * The body of one request to a real-time API: its parts as they came, and the bytes of the budget that the request holds
 * until it is answered. On the hot path: nothing is parsed, and only small parts are copied.
 */
import type { BodyBudget, BodyOwner } from "../access/body-budget.ts";
import { keepPart } from "../access/body-parts.ts";
import { watchPace } from "../access/held-body.ts";
import type { PaceWatch, WatchedBody } from "../access/pace-watch.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SMALL_BODY_BYTES } from "../contracts/limits/requests.ts";

export class ArrivingBody implements WatchedBody {
  readonly parts: Buffer[] = [];
  private readonly budget: BodyBudget;
  /** The length by its head; 0 if there is none. */
  private readonly announced: number;
  /** Total bytes of `parts`. */
  private received = 0;
  /** The block into which small parts are merged. */
  private block: Buffer | undefined;
  /** What the request holds beside its body. It is reserved with the first bytes. */
  private readonly beside: number;
  /** Bytes of the budget that this body has reserved. */
  private reserved = 0;
  /** The sender and API that these bytes are charged to; undefined if the budget had plenty. */
  private owner: BodyOwner | undefined;
  private stopWatching: (() => void) | undefined;
  /** The watch that this body is in, with all other small ones. */
  private pace: PaceWatch | undefined;

  /** `beside`: what the request holds beside its body. */
  constructor(budget: BodyBudget, announced: string | undefined, beside: number) {
    this.budget = budget;
    this.beside = beside;
    this.announced = Number(announced ?? 0);
  }

  get bytes(): number {
    return this.received;
  }

  get size(): number {
    return Math.max(this.announced, this.received);
  }

  /** Whether all announced bytes have arrived. */
  get isWhole(): boolean {
    return this.received === this.announced;
  }

  get isCharged(): boolean {
    return this.owner !== undefined;
  }

  /** Whether the head announces so many bytes that they are reserved before they arrive. */
  get isReservedAhead(): boolean {
    return this.announced > SMALL_BODY_BYTES;
  }

  /** Whether it is so large that its pace must be watched from now on. */
  get needsWatch(): boolean {
    return this.reserved - this.beside > SMALL_BODY_BYTES && this.stopWatching === undefined;
  }

  /** Bytes that were reserved without an owner are released: the next call of `reserve` reserves them again. */
  charge(owner: BodyOwner): void {
    this.release();
    this.owner = owner;
  }

  /** All that is reserved. */
  get held(): number {
    return this.reserved;
  }

  /** What a request holds whose body has so many bytes. */
  withHead(bytes: number): number {
    return bytes + this.beside;
  }

  /** Reserves what the request holds with so many bytes of its body. False if the budget lacks them. */
  reserve(bytes: number): boolean {
    const inAll = this.withHead(bytes);
    if (!this.budget.reserve(inAll - this.reserved, this.owner, inAll)) return false;
    this.reserved = inAll;
    return true;
  }

  keep(part: Buffer): void {
    this.received += part.length;
    this.block = keepPart(this.parts, part, this.block);
  }

  /** Calls `onSlow` if the body, which is a large one, stops arriving. */
  watch(onSlow: () => void): void {
    this.stopWatching = watchPace(
      () => this.reserved - this.beside,
      () => this.received,
      onSlow,
    );
  }

  /** The same for a small one. */
  watchIn(pace: PaceWatch, onSlow: () => void): void {
    if (this.pace !== undefined) return;
    this.pace = pace;
    pace.add(this, onSlow);
  }

  /** Nothing more comes. */
  close(): void {
    this.stopWatching?.();
    this.pace?.delete(this);
  }

  /** The body is no longer needed. */
  release(): void {
    this.budget.release(this.reserved, this.owner);
    this.reserved = 0;
  }
}

export function bodyTooLarge(maxBodyBytes: number): ServiceError {
  return new ServiceError(
    "body_too_large",
    `the body has more than ${maxBodyBytes} bytes; start the server with a larger --max-body, or send less`,
  );
}
