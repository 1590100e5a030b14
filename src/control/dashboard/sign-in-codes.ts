/** One-time codes, each of which signs one browser in. Only memory has them, and only as hashes. */
import { randomBytes } from "node:crypto";
import { sha256Of } from "../../access/permission.ts";
import {
  SIGN_IN_CODE_MS,
  SIGN_IN_CODES_MAX,
  SIGN_IN_CODES_OF_A_KEY_MAX,
} from "../../contracts/limits/authorization.ts";

/** `endMs` is on the clock of `performance.now()`. */
interface Code {
  keySha256: string;
  endMs: number;
}

export class SignInCodes {
  /** By their hashes, oldest first. */
  private readonly codes = new Map<string, Code>();

  /** Makes a code for the key with this hash. The oldest codes end if there are too many. */
  make(keySha256: string, nowMs: number): string {
    for (const [hash, { endMs }] of this.codes) if (endMs <= nowMs) this.codes.delete(hash);
    const ofKey = [...this.codes].filter(([, code]) => code.keySha256 === keySha256);
    if (ofKey.length >= SIGN_IN_CODES_OF_A_KEY_MAX) this.codes.delete(ofKey[0]![0]);
    if (this.codes.size >= SIGN_IN_CODES_MAX) this.codes.delete([...this.codes.keys()][0]!);
    const code = randomBytes(32).toString("base64url");
    this.codes.set(sha256Of(code), { keySha256, endMs: nowMs + SIGN_IN_CODE_MS });
    return code;
  }

  /** Uses a code up. Returns the hash of its key; undefined if the code is unknown, used or too old. */
  take(code: string, nowMs: number): string | undefined {
    const hash = sha256Of(code);
    const known = this.codes.get(hash);
    this.codes.delete(hash);
    return known !== undefined && known.endMs > nowMs ? known.keySha256 : undefined;
  }
}
