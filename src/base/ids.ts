/** Identifiers: job ids (ULID, https://github.com/ulid/spec, in lower case) and short random tokens. */
import { randomBytes } from "node:crypto";

const CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz";
const JOB_ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** 26 characters, sortable by time, 80 random bits: unguessable. */
export function newUlid(nowMs: number = Date.now()): string {
  let time = "";
  for (let rest = nowMs, i = 0; i < 10; i++, rest = Math.floor(rest / 32)) time = CROCKFORD[rest % 32] + time;
  let random = "";
  for (const byte of randomBytes(16)) random += CROCKFORD[byte % 32];
  return time + random;
}

export function isUlid(text: string): boolean {
  return JOB_ID.test(text);
}

/** A secret of 128 bits in hexadecimal. */
export function newToken(): string {
  return randomBytes(16).toString("hex");
}
