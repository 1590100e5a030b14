/**
 * The compute of one API's replicas: what its workers have, what is kept for those that take their place, and what it waits
 * for. The place of a replica that dies, or that makes room for its successor, stays with the API; nobody who waits comes between.
 */
import type { Ask, Compute, ComputeAccount, Grant } from "../engine/compute-account.ts";
import { sumOf } from "../engine/describe-compute.ts";

/** A worker with its part of the machine; none once another has it. */
export interface Placed {
  grant: Grant | undefined;
}

export interface PlacesOptions {
  account: ComputeAccount;
  /** Who holds it, for others who wait. */
  holder: string;
  /** What was waited for is there. */
  onGranted: () => void;
}

export class ReplicaPlaces {
  private readonly options: PlacesOptions;
  /** Of one worker of the newest version. */
  private need: Compute = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };
  private perReplica = 1;
  private kept: Grant[] = [];
  /** Each is for a whole replica: two APIs that had half of one each would wait for each other. */
  private asks: Ask[] = [];

  constructor(options: PlacesOptions) {
    this.options = options;
  }

  /** A version is new: what was kept or waited for was for the one before. */
  fit(need: Compute, perReplica: number): void {
    const isSame = perReplica === this.perReplica && isEqual(need, this.need);
    this.need = need;
    this.perReplica = perReplica;
    if (!isSame) this.release();
  }

  /** Places that no worker has yet. */
  get spare(): number {
    return this.kept.length;
  }

  /** For how many more workers the machine has room now. */
  get room(): number {
    return this.options.account.room(this.need);
  }

  /** A worker's place; undefined if there is none. */
  take(): Grant | undefined {
    const { account, holder } = this.options;
    return this.kept.pop() ?? account.occupy(this.need, holder);
  }

  /** What a worker has that a former controller started. */
  takeAgain(gpus: readonly string[]): Grant {
    const { account, holder } = this.options;
    return account.occupyAgain(this.need, gpus, holder);
  }

  /** The place of a worker that is gone, for its successor. */
  keep(grant: Grant): void {
    const { account, holder } = this.options;
    const isSame = isEqual(this.need, sumOf([grant]));
    const fitting = isSame ? grant : account.exchange([grant], this.need, holder);
    if (fitting === undefined) account.giveBack(grant);
    else this.kept.push(fitting);
  }

  /** Others get what is kept beyond `count`. */
  keepOnly(count: number): void {
    for (const grant of this.kept.splice(count)) this.options.account.giveBack(grant);
  }

  /** Waits for places of as many workers more, in whole replicas, and no longer for others. */
  waitFor(workers: number): void {
    const { account, holder } = this.options;
    const whole = this.ofReplica;
    const count = Math.min(Math.ceil(workers / this.perReplica), Math.max(1, account.capacity(whole)));
    for (const ask of this.asks.splice(workers > 0 ? count : 0)) account.cancel(ask);
    while (workers > 0 && this.asks.length < count) {
      const ask: Ask = account.ask(whole, (grant) => this.granted(ask, grant), holder);
      this.asks.push(ask);
    }
  }

  /** Whether a new replica could run beside `old` until those leave, on CPUs that are theirs. */
  canBorrow(old: readonly Placed[]): boolean {
    return this.options.account.canBorrow(this.ofReplica, grantsOf(old));
  }

  borrow(old: readonly Placed[]): void {
    const { account, holder } = this.options;
    const grant = account.borrow(this.ofReplica, grantsOf(old), holder);
    if (grant !== undefined) this.kept.push(...account.split(grant, this.perReplica));
  }

  /** How many of `old` have to leave for one new replica to fit, one replica at least; 0 if it does not fit without all of them. */
  leavingForOne(old: readonly Placed[]): number {
    const { account } = this.options;
    for (let count = Math.min(this.perReplica, old.length); count > 0 && count <= old.length; count++)
      if (account.canExchange(grantsOf(old.slice(0, count)), this.ofReplica)) return count;
    return 0;
  }

  /** Makes the places of `old`, which are leaving, large enough for the replica that comes after them. */
  handOver(old: readonly Placed[]): void {
    const { account, holder } = this.options;
    const grants = grantsOf(old);
    // Not smaller yet: until they are gone, they use what they have.
    const most = largest(sumOf(grants), this.ofReplica);
    const grant = account.exchange(grants, most, holder);
    if (grant === undefined) return;
    const parts = account.split(grant, this.perReplica);
    for (const [i, worker] of old.entries()) worker.grant = parts[i];
    this.kept.push(...parts.slice(old.length));
  }

  /** What one replica needs, and who has what it would need. */
  describe(): string {
    return this.options.account.describe(this.ofReplica);
  }

  /** Keeps nothing, and waits for nothing. */
  release(): void {
    this.keepOnly(0);
    this.waitFor(0);
  }

  private get ofReplica(): Compute {
    const { cpuMillis, memoryBytes, gpus } = this.need;
    const times = this.perReplica;
    return { cpuMillis: cpuMillis * times, memoryBytes: memoryBytes * times, gpus: gpus * times };
  }

  private granted(ask: Ask, grant: Grant): void {
    this.asks = this.asks.filter((other) => other !== ask);
    this.kept.push(...this.options.account.split(grant, this.perReplica));
    this.options.onGranted();
  }
}

function grantsOf(workers: readonly Placed[]): Grant[] {
  return workers.flatMap(({ grant }) => (grant === undefined ? [] : [grant]));
}

function isEqual(a: Compute, b: Compute): boolean {
  return a.cpuMillis === b.cpuMillis && a.memoryBytes === b.memoryBytes && a.gpus === b.gpus;
}

function largest(a: Compute, b: Compute): Compute {
  return {
    cpuMillis: Math.max(a.cpuMillis, b.cpuMillis),
    memoryBytes: Math.max(a.memoryBytes, b.memoryBytes),
    gpus: Math.max(a.gpus, b.gpus),
  };
}
