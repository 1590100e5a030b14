/**
 * How a server proves that it owns a data directory, before the command line sends it the directory's admin token. It
 * answers a random number with a code that only a holder of the token's hash can compute. The code includes the
 * server's address and port, so that a program at another address cannot pass it off as its own.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export const PROOF_PATH = "/-/proof";
export const NONCE_PATTERN = /^[0-9a-f]{64}$/;

export function newNonce(): string {
  return randomBytes(32).toString("hex");
}

export interface Challenge {
  /** SHA-256 of the admin token, hexadecimal. */
  tokenSha256: string;
  nonce: string;
  /** The server's side of the connection, as either end sees it. */
  host: string | undefined;
  port: number | undefined;
}

export function proofOf({ tokenSha256, nonce, host, port }: Challenge): string {
  // A socket for both families writes an IPv4 address as IPv6.
  const address = `${(host ?? "").replace(/^::ffff:/, "")} ${port ?? ""}`;
  return createHmac("sha256", tokenSha256).update(`quern server proof 1\n${nonce}\n${address}`).digest("hex");
}

export function isProof(proof: string, challenge: Challenge): boolean {
  const [given, expected] = [Buffer.from(proof), Buffer.from(proofOf(challenge))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}
