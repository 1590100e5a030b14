/** Names of objects that Quern writes for itself beside those of users. No listing of input shows them. */
import { firstUlidOf, newUlid } from "../base/ids.ts";

/** A file that is being written, before it has its name. */
export function newTemporaryName(): string {
  return `.quern-${newUlid()}.tmp`;
}

export function isTemporaryName(name: string): boolean {
  return /^\.quern-[0-9a-z]{26}\.tmp$/.test(name);
}

/** An object that shows whether a store honours conditions. It goes at once, unless the server is killed. */
export function newProbeName(): string {
  return `.quern-probe-${newUlid()}`;
}

/** How old a probe is that no server is still using. */
const PROBE_LEFT_MS = 3_600_000;
const PROBE = /(?:^|\/)\.quern-probe-([0-9a-z]{26})$/;

/** A name or an address. Probes may be anywhere that anybody may name as an output, such as beside the input. */
export function isProbe(path: string): boolean {
  return PROBE.test(path);
}

/** One that a killed server has left. */
export function isLeftProbe(path: string, nowMs: number): boolean {
  const [, id] = PROBE.exec(path) ?? [];
  return id !== undefined && id < firstUlidOf(nowMs - PROBE_LEFT_MS);
}
