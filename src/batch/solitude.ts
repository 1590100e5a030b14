/**
 * Lets one batch run alone on this server: nothing else is at any worker of any job meanwhile. Only then is it known that it was
 * this batch that took the server or the machine down. Workers of real-time APIs do not take part.
 */
import { contain } from "../base/boundary.ts";

export interface SolitudeMember {
  /** Nothing is at its workers, and nothing is about to be. */
  readonly isIdle: boolean;
  /** Leases what it may. */
  pump(): void;
}

export class Solitude {
  private readonly members = new Set<SolitudeMember>();
  /** The first one is alone, or waits until all are idle. */
  private readonly queue: SolitudeMember[] = [];
  private isTaken = false;

  join(member: SolitudeMember): void {
    this.members.add(member);
  }

  /** It leases nothing any more. */
  leave(member: SolitudeMember): void {
    this.members.delete(member);
    this.exit(member);
  }

  /** Whether `member` may lease: a batch that is to run alone goes before all others, so that it does not wait for ever. */
  isOpenTo(member: SolitudeMember): boolean {
    return this.queue.length === 0 || (this.queue[0] === member && !this.isTaken);
  }

  /** True when `member` is alone now. Otherwise it is pumped when that may be so. */
  enter(member: SolitudeMember): boolean {
    if (!this.queue.includes(member)) this.queue.push(member);
    if (this.isTaken || this.queue[0] !== member) return false;
    for (const other of this.members) if (!other.isIdle) return false;
    this.isTaken = true;
    return true;
  }

  /** Its batch is done, or it has no worker to run it: whoever waits goes on. */
  exit(member: SolitudeMember): void {
    const at = this.queue.indexOf(member);
    if (at < 0) return;
    if (at === 0) this.isTaken = false;
    this.queue.splice(at, 1);
    for (const other of this.members) contain("a job beside another", () => other.pump());
  }

  /** A member has become idle. */
  hasChanged(): void {
    if (this.queue.length > 0 && !this.isTaken) this.queue[0]!.pump();
  }
}
