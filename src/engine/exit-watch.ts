/**
 * Tells whoever has a process now that it has ended. A process may have many owners, one after the other, and its
 * promise would hold all of them until it ends.
 */
import { inBackground } from "../base/boundary.ts";
import type { RunningWorker, WorkerExit } from "./engine.ts";

export type OnExit = (exit: WorkerExit) => void;

export class ExitWatch {
  private exit: WorkerExit | undefined;
  private onExit: OnExit = () => {};

  constructor({ exited }: Pick<RunningWorker, "exited">) {
    inBackground(
      exited.then((exit) => {
        this.exit = exit;
        this.onExit(exit);
      }),
    );
  }

  /** From now on `onExit` is called, later than this returns, and that of the owner before is not. */
  follow(onExit: OnExit): void {
    this.onExit = onExit;
    const { exit } = this;
    if (exit !== undefined) queueMicrotask(() => onExit(exit));
  }
}
