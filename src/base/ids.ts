/** Identifiers: job ids (ULID, https://github.com/ulid/spec, in lower case) and short random tokens. */
import { randomBytes } from "node:crypto";
import { wallMs } from "./clock.ts";

const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";
const JOB_ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** 26 characters, sortable by time, 80 random bits: unguessable. */
export function newUlid(nowMs: number = wallMs()): string {
  let random = "";
  for (const byte of randomBytes(16)) random += CROCKFORD[byte % 32];
  return timePart(nowMs) + random;
}

/** Those made before this time are less than it, and those made at it or later are greater. */
export function firstUlidOf(ms: number): string {
  return timePart(Math.max(0, Math.floor(ms))) + "0".repeat(16);
}

function timePart(ms: number): string {
  let time = "";
  for (let rest = ms, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = CROCKFORD[rest % 32] + time;
  return time;
}

let lastMs = 0;
let inThisMs = 0;

/** Like `newUlid`, and greater than all that this process made before (up to a million in one millisecond). */
export function newOrderedUlid(): string {
  const nowMs = Math.max(wallMs(), lastMs);
  inThisMs = nowMs === lastMs ? inThisMs + 1 : 0;
  lastMs = nowMs;
  const id = newUlid(nowMs);
  let order = "";
  for (let rest = inThisMs, i = 0; i < 4; i++, rest = Math.floor(rest / 32))
    order = CROCKFORD[rest % 32] + order;
  return id.slice(0, 10) + order + id.slice(14);
}

export function isUlid(text: string): boolean {
  return JOB_ID.test(text);
}

/** A secret of 128 bits in hexadecimal. */
export function newToken(): string {
  return randomBytes(16).toString("hex");
}
