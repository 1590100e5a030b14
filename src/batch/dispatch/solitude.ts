/**
 * Lets one batch run alone on this server: no other batch is at any worker of any job. Only then is it certain which
 * batch brought the server or the machine down. Workers of real-time APIs do not take part.
 */
import { contain } from "../../base/boundary.ts";

export interface SolitudeMember {
  /** No batch is at its workers or about to go out. */
  readonly isIdle: boolean;
  /** Leases the batches that it may lease now. */
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

  /** Removes a member that no longer leases. */
  leave(member: SolitudeMember): void {
    this.members.delete(member);
    this.exit(member);
  }

  /**
   * Whether `member` may lease. A batch that must run alone goes before all others, so that it does not wait for ever.
   */
  isOpenTo(member: SolitudeMember): boolean {
    return this.queue.length === 0 || (this.queue[0] === member && !this.isTaken);
  }

  /** True if `member` is alone now. If not, `pump` is called when that may have changed. */
  enter(member: SolitudeMember): boolean {
    if (!this.queue.includes(member)) this.queue.push(member);
    if (this.isTaken || this.queue[0] !== member) return false;
    for (const other of this.members) if (!other.isIdle) return false;
    this.isTaken = true;
    return true;
  }

  /** Ends the turn of a member whose batch is done, or that has no worker for it. The others continue. */
  exit(member: SolitudeMember): void {
    const at = this.queue.indexOf(member);
    if (at < 0) return;
    if (at === 0) this.isTaken = false;
    this.queue.splice(at, 1);
    for (const other of this.members) contain("a job beside another", () => other.pump());
  }

  /** A member may have become idle: the first in the queue tries again. */
  hasChanged(): void {
    if (this.queue.length > 0 && !this.isTaken) this.queue[0]!.pump();
  }
}
