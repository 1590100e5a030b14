/**
 * How many bytes of requests' bodies one process holds. A body counts from when it is announced: what has been let in may
 * come all at once.
 */

export class BodyBudget {
  private held = 0;
  private readonly most: number;
  private readonly mostOfLarge: number;
  private readonly smallBytes: number;

  /** `forSmall`: of `most`, the part that is kept for bodies of up to `smallBytes`, so that large ones do not shut them out. */
  constructor({ most, forSmall, smallBytes }: { most: number; forSmall: number; smallBytes: number }) {
    this.most = most;
    this.mostOfLarge = most - forSmall;
    this.smallBytes = smallBytes;
  }

  /** Takes bytes for a body, of which `inAll` are known by now; whether there was room. */
  reserve(bytes: number, inAll = bytes): boolean {
    const most = inAll <= this.smallBytes ? this.most : this.mostOfLarge;
    if (this.held + bytes > most) return false;
    this.held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.held -= bytes;
  }
}
