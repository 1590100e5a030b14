/** Where the workers of jobs get their compute: the account of this machine, or pods of a cluster. */
import type { ComputeAccount } from "../../engine/compute-account.ts";

type Asked = "ask" | "cancel" | "giveBack" | "mayKeep" | "mayYield" | "waitingCount" | "capacity";
type Told = "delayOf" | "jobsAbove" | "describe";

export interface JobCompute extends Pick<ComputeAccount, Asked | Told> {
  /** Of those that ask: how many have a place where their project or its environment is being made. */
  readonly preparingCount?: number;
}
