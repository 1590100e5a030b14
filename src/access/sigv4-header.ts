/**
 * Reads the AWS Signature Version 4 in a request's head. The reader is strict: each field comes once, in the canonical
 * form, and anything ambiguous is refused. Everything that the head alone can show is checked before a body is read.
 */
import { ServiceError } from "../contracts/errors.ts";

export const ALGORITHM = "AWS4-HMAC-SHA256";
/** In place of the body's hash: the client did not sign the body. */
export const UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD";
/** The same limit as Amazon's. */
const SKEW_MS = 15 * 60_000;
/** A header's name in lower case (RFC 9110, section 5.6.2). */
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const LEGAL = "Credential=…, SignedHeaders=…, Signature=…";

export type Headers = Record<string, string | string[] | undefined>;

/** The scopes for which requests to this server are signed; empty means any. */
export interface SigningScope {
  regions: readonly string[];
  services: readonly string[];
}

export interface SignedHead {
  accessKeyId: string;
  /** `20260131/eu-west-1/execute-api/aws4_request`. */
  scope: string;
  signedHeaders: readonly string[];
  /** 32 bytes, hexadecimal. */
  signature: string;
  /** As in the header X-Amz-Date. */
  date: string;
  dateMs: number;
}

export function isSigned(authorization: string | undefined): boolean {
  return authorization?.startsWith(`${ALGORITHM} `) ?? false;
}

/** Throws `unauthorized` with the reason. */
export function readSignedHead(headers: Headers, expected: SigningScope, nowMs: number): SignedHead {
  const fields = fieldsOf(String(headers.authorization));
  const [accessKeyId, day, region, service, end, ...more] = (fields.get("Credential") ?? "").split("/");
  const signature = fields.get("Signature") ?? "";
  if (!accessKeyId || end !== "aws4_request" || more.length > 0 || !/^[0-9a-f]{64}$/.test(signature))
    throw refused(`the Authorization header must be ${ALGORITHM} ${LEGAL}`);
  assertScope("region", region!, expected.regions, "--sigv4-region");
  assertScope("service", service!, expected.services, "--sigv4-service");
  assertBodyHash(headers["x-amz-content-sha256"]);
  const signedHeaders = signedHeadersOf(fields.get("SignedHeaders") ?? "", headers);
  const date = String(headers["x-amz-date"] ?? "");
  const dateMs = momentOf(date, day!, nowMs);
  const scope = [day, region, service, end].join("/");
  return { accessKeyId, scope, signedHeaders, signature, date, dateMs };
}

/** The three fields, each once, in any order. */
function fieldsOf(header: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const part of header.slice(ALGORITHM.length).split(",")) {
    const [, name, value] = /^(Credential|SignedHeaders|Signature)=(\S+)$/.exec(part.trim()) ?? [];
    if (name === undefined || fields.has(name))
      throw refused(`the Authorization header must be ${ALGORITHM} ${LEGAL}, each of them once`);
    fields.set(name, value!);
  }
  return fields;
}

/** Every signed name must have been sent: a missing header would count as one with an empty value. */
function signedHeadersOf(text: string, headers: Headers): string[] {
  const names = text.split(";");
  const odd = names.find((name, at) => !HEADER_NAME.test(name) || (at > 0 && name <= names[at - 1]!));
  if (odd !== undefined)
    throw refused(
      `SignedHeaders must be names in lower case, sorted, each once (${JSON.stringify(odd)} is misplaced)`,
    );
  const missing = names.find((name) => !Object.hasOwn(headers, name));
  if (missing !== undefined)
    throw refused(`SignedHeaders names ${missing}, but the request has no such header`);
  if (!names.includes("host")) throw refused("the Host header must be signed");
  return names;
}

/**
 * A body in signed chunks has a value that begins with STREAMING-. Without this, such a request would be refused only
 * after its body, for a signature that does not match.
 */
function assertBodyHash(given: string | string[] | undefined): void {
  if (given === undefined || given === UNSIGNED_PAYLOAD || /^[0-9a-f]{64}$/.test(String(given))) return;
  const text = JSON.stringify(String(given).slice(0, 100));
  throw refused(
    `X-Amz-Content-Sha256 is ${text}, but must be the SHA-256 of the whole body in lower case, ${UNSIGNED_PAYLOAD}, or absent; bodies that are signed in chunks (STREAMING-…) are not supported`,
  );
}

function assertScope(what: string, given: string, expected: readonly string[], option: string): void {
  if (expected.length === 0 || expected.includes(given)) return;
  throw refused(
    `it is for the ${what} ${JSON.stringify(given)}, but this server accepts ${expected.join(", ")} (\`quern up ${option}\`)`,
  );
}

/** A signature is valid for a short time: on its day, and near the server's time. */
function momentOf(date: string, day: string, nowMs: number): number {
  const [, year, month, dayOfMonth, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  if (year === undefined) throw refused("the header X-Amz-Date must be a time such as 20260131T235959Z");
  const atMs = Date.parse(`${year}-${month}-${dayOfMonth}T${hour}:${minute}:${second}Z`);
  if (day !== date.slice(0, 8) || !(Math.abs(nowMs - atMs) <= SKEW_MS))
    throw refused(
      `it was signed at ${date}, which is more than 15 minutes from now, or not on its credential's day`,
    );
  return atMs;
}

export function refused(why: string): ServiceError {
  return new ServiceError("unauthorized", `the request's signature is not valid: ${why}`);
}
