/**
 * Decides whether a child has been silent for too long. A tick counts only if the parent was awake for it. After a
 * suspended machine, or a stopped or starved parent, a child's silence says nothing.
 */
import {
  CHILD_SILENT_MAX_MS,
  CHILD_START_SILENT_MAX_MS,
  HEARTBEAT_MS,
} from "../contracts/limits/processes.ts";

export class Silence {
  private silentMs = 0;
  private lastTickMs: number;

  constructor(nowMs: number) {
    this.lastTickMs = nowMs;
  }

  /** The child has said something. */
  heard(): void {
    this.silentMs = 0;
  }

  /** Whether the child has said something since the tick before the last one. */
  get hasAnswered(): boolean {
    return this.silentMs <= HEARTBEAT_MS;
  }

  /** Called every HEARTBEAT_MS. Returns true if the child must be replaced. */
  tick(nowMs: number, isReady: boolean): boolean {
    const wasAwake = nowMs - this.lastTickMs < 2 * HEARTBEAT_MS;
    this.lastTickMs = nowMs;
    this.silentMs = wasAwake ? this.silentMs + HEARTBEAT_MS : 0;
    return this.silentMs > (isReady ? CHILD_SILENT_MAX_MS : CHILD_START_SILENT_MAX_MS);
  }
}
