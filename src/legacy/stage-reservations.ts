/** Reserves compute for the stages of one application, and says which model waits for it and why. */
import { parseBytes, parseCpuMillis } from "../contracts/config/quantities.ts";
import type { Ask, Reservation } from "../engine/reservations.ts";
import { type Claimant, stagesOf } from "../engine/scheduler/claims.ts";
import type { Compute } from "../engine/scheduler/compute.ts";
import type { ResourceGraph } from "./check/resource-graph.ts";

/** The machine's reservations. */
export interface StageAccount {
  ask: (need: Compute, onReserved: (reservation: Reservation) => void, by: Claimant) => Ask;
  cancel: (ask: Ask) => boolean;
  occupyAgain: (need: Compute, gpus: readonly string[], by: Claimant) => Reservation;
  giveBack: (reservation: Reservation) => void;
  describe: (need: Compute, withNames: boolean) => string;
}

/** Data is computed without waiting for compute. */
export const NOTHING: Compute = { cpuMillis: 0, memoryBytes: 0, gpus: 0 };

export function needOf({ resource }: ResourceGraph["models"][number]): Compute {
  const { cpu, mem, gpu } = resource.compute;
  return {
    cpuMillis: cpu == null ? 0 : parseCpuMillis(cpu)!,
    memoryBytes: mem == null ? 0 : parseBytes(mem)!,
    gpus: gpu ?? 0,
  };
}

export class StageReservations {
  /** The model that waits for compute, and why. */
  waiting: { id: string; reason: string } | undefined;
  private readonly account: StageAccount;
  private readonly by: Claimant;
  private readonly ended: AbortSignal;

  /** `ended`: nothing is reserved any more. */
  constructor(account: StageAccount, app: string, ended: AbortSignal) {
    this.account = account;
    this.by = stagesOf(app);
    this.ended = ended;
  }

  /** Waits for compute for the model `id`; undefined if the pipeline was ended during the wait. */
  async reserve(id: string, need: Compute): Promise<Reservation | undefined> {
    if (this.ended.aborted) return undefined;
    const { account } = this;
    // A stage that needs nothing never waits, even if others have reserved more than the machine has.
    if (need.cpuMillis + need.memoryBytes + need.gpus === 0) return account.occupyAgain(need, [], this.by);
    this.waiting = { id, reason: account.describe(need, true) };
    const reservation = await this.ask(need);
    this.waiting = undefined;
    if (!this.ended.aborted) return reservation;
    if (reservation !== undefined) account.giveBack(reservation);
    return undefined;
  }

  /** Reserves again the resources held by the previous controller's stage. */
  occupyAgain(reservation: Reservation): Reservation {
    const { gpus } = reservation;
    return this.account.occupyAgain({ ...reservation, gpus: gpus.length }, gpus, this.by);
  }

  giveBack(reservation: Reservation): void {
    this.account.giveBack(reservation);
  }

  private ask(need: Compute): Promise<Reservation | undefined> {
    const { account, ended } = this;
    return new Promise((resolve) => {
      const ask = account.ask(need, resolve, this.by);
      ended.addEventListener("abort", () => account.cancel(ask) && resolve(undefined));
    });
  }
}
