/**
 * Verifies the AWS Signature Version 4 of a request ("Signature Version 4 signing process", AWS General Reference). It
 * is for clients that sign with identities, as they do for an identity-based gateway. Credentials come from a file like
 * `~/.aws/credentials`, with an additional `quern_scope`. Secrets cannot be stored as hashes, because they are needed
 * to compute the signature.
 */
import { createHash, createHmac, type Hash, timingSafeEqual } from "node:crypto";
import { type Principal, permissionsOf } from "./permission.ts";
import {
  ALGORITHM,
  type Headers,
  readSignedHead,
  refused,
  type SignedHead,
  type SigningScope,
  UNSIGNED_PAYLOAD,
} from "./sigv4-header.ts";

export interface Credential {
  secret: string;
  principal: Principal;
}

export interface SignedRequest {
  method: string;
  url: string;
  headers: Headers;
}

/**
 * The hash of a body itself, whatever a header says, made as the body arrives. Hashing a whole body blocks the event
 * loop, and many may end in one turn. A part is what one read of a socket returned, so it needs no slices.
 */
export class BodyHash {
  /** Undefined if the client declares that it did not sign the body. */
  private readonly hash: Hash | undefined;

  constructor(headers: Headers) {
    if (headers["x-amz-content-sha256"] !== UNSIGNED_PAYLOAD) this.hash = createHash("sha256");
  }

  add(part: Uint8Array): void {
    this.hash?.update(part);
  }

  /** Once, when the body is complete. */
  end(): string {
    return this.hash?.digest("hex") ?? UNSIGNED_PAYLOAD;
  }
}

/** The credentials whose signatures are accepted, and the scopes for which they are. */
export interface SignatureRules {
  /** By access key id. */
  credentials: ReadonlyMap<string, Credential>;
  scope: SigningScope;
}

/** Throws if an entry lacks one of its three lines, or one is empty: with an empty secret anyone could sign. */
export function parseCredentials(text: string): Map<string, Credential> {
  const credentials = new Map<string, Credential>();
  for (const section of text.split(/^\s*\[/m).slice(1)) {
    const [name, ...lines] = section.split("\n");
    const fields = new Map(lines.flatMap((line) => fieldOf(line)));
    const [id, secret, scope] = ["aws_access_key_id", "aws_secret_access_key", "quern_scope"].map((key) =>
      fields.get(key),
    );
    if (!id || !secret || !scope)
      throw new Error(`[${name} must have aws_access_key_id, aws_secret_access_key and quern_scope`);
    credentials.set(id, {
      secret,
      principal: { id: `aws:${id}`, permissions: permissionsOf(scope), rate: null },
    });
  }
  return credentials;
}

function fieldOf(line: string): [string, string][] {
  const [, key, value] = /^\s*([^#;=\s]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
  return key === undefined ? [] : [[key, value!]];
}

/** Checks what the head alone shows. Throws `unauthorized` with the reason. */
export function checkSignedHead(
  headers: Headers,
  { credentials, scope }: SignatureRules,
  nowMs: number,
): SignedHead & Credential {
  const head = readSignedHead(headers, scope, nowMs);
  const credential = credentials.get(head.accessKeyId);
  if (credential === undefined) throw refused(`the access key ${head.accessKeyId} is unknown`);
  return { ...head, ...credential };
}

/**
 * Throws `unauthorized` if the signature does not match this request. `verified`: the hash with which the head was
 * verified before, if it was.
 */
export function verifySignature(
  request: SignedRequest,
  body: BodyHash,
  head: SignedHead & Credential,
  verified?: string,
): void {
  const hash = body.end();
  if (verified === undefined) verifyWith(hash, request, head);
  else if (hash !== verified) throw refused("the body does not have the hash of X-Amz-Content-Sha256");
}

/**
 * Verifies the signature before the body is here, if a header gives the body's hash: the signer is then known. Returns
 * this hash, or undefined without such a header. Only the body can show that it has this hash.
 */
export function verifyHead(request: SignedRequest, head: SignedHead & Credential): string | undefined {
  const hash = request.headers["x-amz-content-sha256"] as string | undefined;
  if (hash !== undefined) verifyWith(hash, request, head);
  return hash;
}

function verifyWith(bodyHash: string, request: SignedRequest, head: SignedHead & Credential): void {
  const canonical = canonicalRequest(request, head.signedHeaders, bodyHash);
  const text = [ALGORITHM, head.date, head.scope, sha256(canonical)].join("\n");
  const signature = hmac(signingKey(head.secret, head.scope), text);
  if (!timingSafeEqual(Buffer.from(head.signature, "hex"), signature))
    throw refused("the signature does not match this request and this key's secret");
}

function canonicalRequest(
  { method, url, headers }: SignedRequest,
  signedHeaders: readonly string[],
  bodyHash: string,
): string {
  const query = url.indexOf("?");
  const path = query < 0 ? url : url.slice(0, query);
  const lines = signedHeaders.map((name) => `${name}:${headerText(headers[name])}`);
  return [
    method,
    // Encoded as it came, and encoded again: every service except S3 does so.
    encode(path).replaceAll("%2F", "/"),
    canonicalQuery(query < 0 ? "" : url.slice(query + 1)),
    ...lines,
    "",
    signedHeaders.join(";"),
    bodyHash,
  ].join("\n");
}

const UNRESERVED = /^[\w.~-]*$/;

function canonicalQuery(query: string): string {
  const pairs = query
    .split("&")
    .filter(Boolean)
    .map((pair) => {
      const at = pair.indexOf("=");
      // As predictors read it: a plus sign stands for a space (https://url.spec.whatwg.org/#urlencoded-parsing).
      const [name, value] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
      return [encode(decode(spaced(name))), encode(decode(spaced(value)))] as const;
    });
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return pairs
    .sort((a, b) => order(a[0], b[0]) || order(a[1], b[1]))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

const spaced = (text: string) => text.replaceAll("+", " ");

function headerText(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value.join(",") : (value ?? "")).trim().replace(/ +/g, " ");
}

function signingKey(secret: string, scope: string): Buffer {
  return scope.split("/").reduce<Buffer>((key, part) => hmac(key, part), Buffer.from(`AWS4${secret}`));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** RFC 3986: everything but letters, digits, `-`, `.`, `_` and `~`. */
/** All but unreserved characters (RFC 3986, section 2.3). No function for each character: a stranger may send 16,000. */
function encode(text: string): string {
  if (UNRESERVED.test(text)) return text;
  return encodeURIComponent(text)
    .replaceAll("!", "%21")
    .replaceAll("'", "%27")
    .replaceAll("(", "%28")
    .replaceAll(")", "%29")
    .replaceAll("*", "%2A");
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
