/**
 * How many bytes of requests' bodies one process holds, purely. A body counts from when it is announced: what has been let in may
 * come all at once. Nobody gets all of it: a sender may hold twice as much as is left for others, an API seven times as much.
 */

/** Who a body is charged to. */
export interface BodyOwner {
  /** A key, or the client's address while there is none. */
  sender: string;
  api: string;
}

/**
 * A sender leaves at least a third of the room to others, an API an eighth. Of 448 MiB these are 149 and 56: so another key has room for the
 * largest body, at the same API too.
 */
const SENDER_SHARE = 2;
const API_SHARE = 7;

export class BodyBudget {
  private held = 0;
  private readonly most: number;
  private readonly mostOfLarge: number;
  private readonly smallBytes: number;
  /** Apart, so that whoever holds large bodies still has room for small ones. */
  private readonly ofSmall = new OwnerShares();
  private readonly ofLarge = new OwnerShares();

  /** `forSmall`: of `most`, the part that is kept for bodies of up to `smallBytes`, so that large ones do not shut them out. */
  constructor({ most, forSmall, smallBytes }: { most: number; forSmall: number; smallBytes: number }) {
    this.most = most;
    this.mostOfLarge = most - forSmall;
    this.smallBytes = smallBytes;
  }

  /** Whether it does not matter whose a body of so many bytes is: it is small, and half of the room is free. */
  isPlenty(bytes: number): boolean {
    return bytes <= this.smallBytes && this.held + bytes <= this.most / 2;
  }

  /** Takes bytes for a body, of which `inAll` are known by now; whether there was room. Without an owner: see `isPlenty`. */
  reserve(bytes: number, owner?: BodyOwner, inAll = bytes): boolean {
    const left = (inAll <= this.smallBytes ? this.most : this.mostOfLarge) - this.held - bytes;
    if (left < 0 || (owner !== undefined && !this.charge(owner, inAll - bytes, inAll, left))) return false;
    this.held += bytes;
    return true;
  }

  /** All that was reserved for a body. */
  release(bytes: number, owner?: BodyOwner): void {
    this.held -= bytes;
    if (owner !== undefined) this.sharesOf(bytes).add(owner, -bytes);
  }

  /** A body that grows may become a large one. */
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

class Shares {
  private readonly held = new Map<string, number>();
  private readonly share: number;

  constructor(share: number) {
    this.share = share;
  }

  /** `left`: what is free after it. Who has nothing yet gets a first one, however large. */
  fits(name: string, bytes: number, left: number): boolean {
    const has = this.held.get(name);
    return has === undefined || has + bytes <= this.share * left;
  }

  add(name: string, bytes: number): void {
    const has = (this.held.get(name) ?? 0) + bytes;
    if (has > 0) this.held.set(name, has);
    else this.held.delete(name);
  }
}
