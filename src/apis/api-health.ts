/** Whether a real-time API needs a person (docs/contract/operations.md#health). Pure. */
import type { ApiState } from "./api-state.ts";

export interface ApiHealth {
  /** Why it does not serve although it should; undefined if it serves, is scaled to zero, or starts. */
  fault?: string;
  /** What is wrong with an API that serves. */
  warning?: string;
}

/** `isCrashing`: its replicas keep dying soon after they became ready. */
export function healthOf({ name, status, message, replicas }: ApiState, isCrashing: boolean): ApiHealth {
  if (isCrashing) {
    const log = `\`quern logs ${name}\` has their last output`;
    return { fault: `${name}: its replicas keep dying soon after they became ready; ${log}` };
  }
  if (message === undefined) return {};
  const isServing = replicas.some(({ state }) => state === "ready");
  if (status === "live") return { warning: `${name}: ${message}` };
  if (status === "updating" && !isServing) return { warning: `${name} does not serve yet: ${message}` };
  if (!isServing) return { fault: `${name} is in status "${status}": ${message}` };
  return { warning: `${name} serves, but not with all replicas of its newest version: ${message}` };
}
