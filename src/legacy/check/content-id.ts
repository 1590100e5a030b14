/** Computes ids from content, purely: the same content has the same id, in any order of keys. */
import { createHash } from "node:crypto";

/** 64 hexadecimal digits. */
export function contentId(...parts: readonly unknown[]): string {
  return createHash("sha256").update(canonical(parts)).digest("hex");
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(",")}}`;
}
