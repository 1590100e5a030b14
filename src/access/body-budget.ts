/**
 * Bounds the bytes of request bodies that one process holds. Pure. Large bodies count from their announcement, because
 * all that are admitted may arrive at once; small ones count as they arrive. No caller gets everything: a sender may
 * hold twice as much as stays free for others, an API seven times as much.
 */
import { Shares } from "../base/fair/shares.ts";

/** The sender and the API to which a body is charged. */
export interface BodyOwner {
  /** A key, or the client's address while there is none. */
  sender: string;
  api: string;
}

/**
 * Except for its first body, a sender leaves at least a third of the budget to others, an API an eighth. With 448 MiB
 * these are 149 and 56. So another key can still send 93 MiB to the same API, and 149 MiB to another one.
 */
const SENDER_SHARE = 2;
const API_SHARE = 7;

export class BodyBudget {
  private held = 0;
  private readonly most: number;
  private readonly mostOfLarge: number;
  private readonly forSmall: number;
  private readonly smallBytes: number;
  /** Separate, so that a caller that holds large bodies can still send small ones. */
  private readonly ofSmall = new OwnerShares();
  private readonly ofLarge = new OwnerShares();

  /**
   * `forSmall`: the part of `most` that is kept for bodies of up to `smallBytes`, so that large ones do not shut them
   * out.
   */
  constructor({ most, forSmall, smallBytes }: { most: number; forSmall: number; smallBytes: number }) {
    this.most = most;
    this.mostOfLarge = most - forSmall;
    this.forSmall = forSmall;
    this.smallBytes = smallBytes;
  }

  /** Whether a body of this size needs no owner: it is small, and all bodies fit into the part for small ones. */
  isPlenty(bytes: number): boolean {
    return bytes <= this.smallBytes && this.held + bytes <= this.forSmall;
  }

  /**
   * Reserves bytes for a body, of which `inAll` bytes are known by now. False if the budget lacks them. Without an
   * owner: see `isPlenty`.
   */
  reserve(bytes: number, owner?: BodyOwner, inAll = bytes): boolean {
    const left = (inAll <= this.smallBytes ? this.most : this.mostOfLarge) - this.held - bytes;
    if (left < 0 || (owner !== undefined && !this.charge(owner, inAll - bytes, inAll, left))) return false;
    this.held += bytes;
    return true;
  }

  /** Releases everything that was reserved for a body. */
  release(bytes: number, owner?: BodyOwner): void {
    this.held -= bytes;
    if (owner !== undefined) this.sharesOf(bytes).add(owner, -bytes);
  }

  /** A growing body may become a large one. */
  private charge(owner: BodyOwner, before: number, inAll: number, left: number): boolean {
    const [from, to] = [this.sharesOf(before), this.sharesOf(inAll)];
    const added = from === to ? inAll - before : inAll;
    if (!to.fits(owner, added, left)) return false;
    if (from !== to) from.add(owner, -before);
    to.add(owner, added);
    return true;
  }

  private sharesOf(bytes: number): OwnerShares {
    return bytes <= this.smallBytes ? this.ofSmall : this.ofLarge;
  }
}

class OwnerShares {
  private readonly senders = new Shares(SENDER_SHARE);
  private readonly apis = new Shares(API_SHARE);

  fits({ sender, api }: BodyOwner, bytes: number, left: number): boolean {
    return this.senders.fits(sender, bytes, left) && this.apis.fits(api, bytes, left);
  }

  add({ sender, api }: BodyOwner, bytes: number): void {
    this.senders.add(sender, bytes);
    this.apis.add(api, bytes);
  }
}
