/** Who a request comes from, and whether it may pass here: keys from the route snapshot, tokens of a trusted issuer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { keyOf } from "../access/admin-token.ts";
import type { JwtVerifier } from "../access/jwt.ts";
import {
  assertOpens,
  assertPermission,
  type Holder,
  type Need,
  sha256Of,
  unauthorized,
} from "../access/permission.ts";
import { checkSignedHead, isHeadVerified, type SignatureRules, verifySignature } from "../access/sigv4.ts";
import { isSigned, refused } from "../access/sigv4-header.ts";
import { UsedSignatures, type Verdict } from "../access/used-signatures.ts";
import { wallMs } from "../base/clock.ts";
import { ServiceError } from "../contracts/errors.ts";
import { RateLimits } from "./rate-limits.ts";

export interface AuthorizationOptions {
  findKey: (sha256: string) => Holder | undefined;
  /** Another one as soon as there are other keys. */
  keysVersion: () => object;
  jwt: JwtVerifier | undefined;
  /** Of clients that sign with AWS Signature Version 4; undefined where signatures are not taken. */
  signatures: (SignatureRules & { repeats: SignatureRepeats }) | undefined;
  /** How many gateways share the load. */
  gateways: number;
}

/** What may come twice with one signature within a few seconds. */
export type SignatureRepeats = "reads" | "predictions";

export class Authorization {
  private readonly options: AuthorizationOptions;
  private readonly limits: RateLimits;
  private readonly usedSignatures: UsedSignatures;

  constructor(options: AuthorizationOptions) {
    this.options = options;
    this.limits = new RateLimits(options.gateways);
    this.usedSignatures = new UsedSignatures(options.signatures?.credentials.size ?? 0);
  }

  /**
   * The holder of what the request presents, where that is a token: a promise the first time that it is seen. Undefined
   * where it is none.
   */
  tokenHolder({ headers }: IncomingMessage): Holder | Promise<Holder> | undefined {
    const { jwt } = this.options;
    const token = jwt === undefined ? undefined : presented(headers);
    if (jwt === undefined || token === undefined || !isToken(token)) return undefined;
    return jwt.known(token) ?? jwt.verify(token);
  }

  /** Whether the request is signed: who it is from shows with its whole body only. */
  isSigned({ headers }: IncomingMessage): boolean {
    return this.options.signatures !== undefined && isSigned(headers.authorization);
  }

  /**
   * Throws `unauthorized` where the head shows already that a signed request cannot pass. Returns who has signed it, where the head shows
   * that too.
   */
  assertSignedHead({ method, url, headers }: IncomingMessage): Holder | undefined {
    const head = checkSignedHead(headers, this.options.signatures!, wallMs());
    return isHeadVerified({ method: method!, url: url!, headers }, head) ? head.holder : undefined;
  }

  /** Throws `unauthorized` where the signature is not this request's, or was used before. */
  signer(
    { method, url, headers }: IncomingMessage,
    body: readonly Buffer[],
    what: "prediction" | "other",
  ): Holder {
    const rules = this.options.signatures!;
    const nowMs = wallMs();
    const head = checkSignedHead(headers, rules, nowMs);
    verifySignature({ method: method!, url: url!, headers, body }, head);
    const isRead = method === "GET" || method === "HEAD" || method === "OPTIONS";
    const mayRepeat = isRead || (what === "prediction" && rules.repeats === "predictions");
    const verdict = this.usedSignatures.use(head, nowMs);
    if (verdict === "new" || (verdict === "repeated" && mayRepeat)) return head.holder;
    throw usedBefore(verdict);
  }

  /**
   * Whose request it is. Throws what it is refused with: `unauthorized`, `forbidden`, `rate_limited`. `tokenHolder` is the verified
   * one, where there is one. Sets the headers of a limit.
   */
  assert(
    request: IncomingMessage,
    response: ServerResponse,
    need: Need,
    tokenHolder: Holder | undefined,
  ): Holder {
    const holder =
      tokenHolder === undefined
        ? assertPermission(presented(request.headers), this.options.findKey, need)
        : assertOpens(tokenHolder, need);
    this.count(holder, response);
    return holder;
  }

  /** The same as before only where no key was made or revoked meanwhile. */
  get keysVersion(): object {
    return this.options.keysVersion();
  }

  /** Whether the request shows nothing that may open anything: no key that is known, no token, no signature. */
  isStranger(request: IncomingMessage): boolean {
    if (this.isSigned(request)) return false;
    const key = presented(request.headers);
    if (key === undefined) return true;
    if (this.options.jwt !== undefined && isToken(key)) return false;
    return !this.hasKey(request);
  }

  /** Whether a key of ours came with the request. */
  hasKey({ headers }: IncomingMessage): boolean {
    const key = presented(headers);
    return key !== undefined && this.options.findKey(sha256Of(key)) !== undefined;
  }

  /** Whether the key or the token of a request still opens anything; a signature ends with its one answer. */
  isStillOpen(request: IncomingMessage): boolean {
    // Whatever stands beside the signature has opened nothing.
    if (this.isSigned(request)) return true;
    const key = presented(request.headers);
    if (key === undefined) return true;
    if (this.options.jwt !== undefined && isToken(key)) return this.options.jwt.isCurrent(key);
    return this.options.findKey(sha256Of(key)) !== undefined;
  }

  /** Counts a request that the controller will judge, where its key has a limit. Throws `rate_limited`. */
  countOnly({ headers }: IncomingMessage, response: ServerResponse): void {
    const key = presented(headers);
    const holder = key === undefined ? undefined : this.options.findKey(sha256Of(key));
    if (holder !== undefined) this.count(holder, response);
  }

  private count(holder: Holder, response: ServerResponse): void {
    if (holder.rate === null) return;
    const { limit, remaining, resetS, isAllowed } = this.limits.take(
      holder.id,
      holder.rate,
      performance.now(),
    );
    response.setHeader("ratelimit-limit", limit);
    response.setHeader("ratelimit-remaining", remaining);
    response.setHeader("ratelimit-reset", resetS);
    if (isAllowed) return;
    const message = `the key ${holder.id} may make ${holder.rate.requests} requests in ${holder.rate.seconds} s; try again in ${resetS} s`;
    throw new ServiceError("rate_limited", message, { retryAfterS: resetS });
  }
}

function usedBefore(verdict: Verdict): ServiceError {
  if (verdict === "too_old")
    return refused(
      "this access key has signed so much that only its newest signatures are taken; sign the request anew",
    );
  return refused(
    "it was used before; sign each request anew. Equal requests of one second have one signature: sign a header that differs too, such as X-Amz-Nonce",
  );
}

/** What a stranger is told, at whatever address. */
export function refusal({ headers }: IncomingMessage): ServiceError {
  return unauthorized(presented(headers), "predict");
}

function presented(headers: IncomingMessage["headers"]): string | undefined {
  return keyOf({ authorization: headers.authorization, "x-api-key": headers["x-api-key"] as string });
}

/** Whether it has a token's form; keys of ours have no dots. */
function isToken(text: string): boolean {
  return text.split(".").length === 3;
}
