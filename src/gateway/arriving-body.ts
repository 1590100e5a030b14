/**
 * The body of one request to a real-time API: its parts as they came, and the bytes of the budget that it holds until
 * no prediction needs it. On the hot path: nothing is parsed, and only small parts are copied.
 */
import type { BodyBudget, BodyOwner } from "../access/body-budget.ts";
import { keepPart } from "../access/body-parts.ts";
import { watchPace } from "../access/held-body.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SMALL_BODY_BYTES } from "../contracts/limits/requests.ts";

export class ArrivingBody {
  readonly parts: Buffer[] = [];
  private readonly budget: BodyBudget;
  /** Total bytes of `parts`. */
  private received = 0;
  /** The block into which small parts are merged. */
  private block: Buffer | undefined;
  /** Bytes of the budget that this body has reserved. */
  private reserved = 0;
  /** The sender and API that these bytes are charged to; undefined if the budget had plenty. */
  private owner: BodyOwner | undefined;
  private stopWatching: (() => void) | undefined;
  /** How many predictions still need the body: the request itself, and its copy for a shadow. */
  private users = 0;

  constructor(budget: BodyBudget) {
    this.budget = budget;
  }

  get bytes(): number {
    return this.received;
  }

  /** Whether it is so large that its pace must be watched from now on. */
  get needsWatch(): boolean {
    return this.reserved > SMALL_BODY_BYTES && this.stopWatching === undefined;
  }

  /** Called before anything is reserved. */
  charge(owner: BodyOwner): void {
    this.owner = owner;
  }

  /** False if the budget lacks the bytes. */
  reserve(bytes: number): boolean {
    const inAll = this.reserved + bytes;
    if (!this.budget.reserve(bytes, this.owner, inAll)) return false;
    this.reserved = inAll;
    return true;
  }

  keep(part: Buffer): void {
    this.received += part.length;
    this.block = keepPart(this.parts, part, this.block);
  }

  /** Calls `onSlow` if the body stops coming. */
  watch(onSlow: () => void): void {
    this.stopWatching = watchPace(
      () => this.reserved,
      () => this.received,
      onSlow,
    );
  }

  /** Nothing more comes. */
  close(): void {
    this.stopWatching?.();
  }

  usedBy(predictions: number): void {
    this.users = predictions;
  }

  /** One of the predictions no longer needs the body. */
  done(): void {
    if (--this.users === 0) this.release();
  }

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
