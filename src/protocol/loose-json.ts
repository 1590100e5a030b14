/** Reads JSON from outside: undefined if the bytes are not JSON, or nested so deep that they cannot be written again. */
import { isDeeperThan } from "../base/json/measure.ts";

/** A worker sends less: a detail of 100 levels in a fault. */
const DEPTH_MAX = 200;

export function parseJson(bytes: Buffer): unknown {
  try {
    return isDeeperThan(bytes, DEPTH_MAX) ? undefined : (JSON.parse(bytes.toString()) as unknown);
  } catch {
    return undefined;
  }
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
