/**
 * Decides who sends a request and whether it may pass: by keys of the route snapshot, tokens of a trusted issuer, and
 * AWS signatures.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type KeyHeaders, keyOf } from "../../access/admin-token.ts";
import type { JwtVerifier } from "../../access/jwt.ts";
import { assertOpens, type Need, type Principal, sha256Of, unauthorized } from "../../access/permission.ts";
import { DASHBOARD_HEADER, isSessionText } from "../../access/sessions.ts";
import { type BodyHash, checkSignedHead, type SignatureRules, verifySignature } from "../../access/sigv4.ts";
import { isSigned, refused } from "../../access/sigv4-header.ts";
import { UsedSignatures, type Verdict } from "../../access/used-signatures.ts";
import { wallMs } from "../../base/clock.ts";
import { addressOwner } from "../../base/fair/address-owner.ts";
import { asServiceError, ServiceError } from "../../contracts/errors.ts";
import { RateLimits } from "./rate-limits.ts";
import { SignedHeads } from "./signed-heads.ts";
import { WaitingTokens } from "./waiting-tokens.ts";

export interface AuthorizationOptions {
  findKey: (sha256: string) => Principal | undefined;
  /** Returns another object as soon as the keys change. */
  keysVersion: () => object;
  jwt: JwtVerifier | undefined;
  /** For clients that sign with AWS Signature Version 4; undefined if signatures are not accepted. */
  signatures: (SignatureRules & { repeats: SignatureRepeats }) | undefined;
  /** How many gateways share the load. */
  gateways: number;
  /** Called with the id of each key that a request presents, if the key is known. */
  onUsed: (id: string) => void;
}

/** Which requests may repeat a signature within a few seconds. */
export type SignatureRepeats = "reads" | "predictions";

/** The headers that `isStillOpen` and `hasKey` read. */
const KEPT = ["authorization", "x-api-key"];
const KEPT_OF_SESSION = ["cookie", DASHBOARD_HEADER];

/** The signature of a presigned URL (AWS Signature Version 4). */
const PRESIGNED = /[?&]x-amz-signature=/i;

export class Authorization {
  private readonly options: AuthorizationOptions;
  private readonly isKnown = (text: string) => this.options.findKey(sha256Of(text)) !== undefined;
  private readonly limits: RateLimits;
  private readonly usedSignatures: UsedSignatures;
  private readonly tokens = new WaitingTokens();
  private readonly signedHeads = new SignedHeads();

  constructor(options: AuthorizationOptions) {
    this.options = options;
    this.limits = new RateLimits(options.gateways);
    this.usedSignatures = new UsedSignatures(options.signatures?.credentials.size ?? 0);
  }

  /**
   * The principal of the request's token: a promise the first time that the token is seen. Undefined if the request has
   * no token.
   */
  tokenPrincipal({ headers, socket }: IncomingMessage): Principal | Promise<Principal> | undefined {
    const { jwt } = this.options;
    const token = jwt === undefined ? undefined : presented(headers);
    if (jwt === undefined || token === undefined || !isToken(token)) return undefined;
    return jwt.known(token) ?? this.tokens.verify(jwt, token, addressOwner(socket.remoteAddress));
  }

  /** Whether the request is signed; its signature can be verified only with the whole body. */
  isSigned({ headers }: IncomingMessage): boolean {
    return this.options.signatures !== undefined && isSigned(headers.authorization);
  }

  /**
   * Throws `unauthorized` if the head already shows that a signed request cannot pass. Returns the signer if the head
   * already proves it.
   */
  assertSignedHead(request: IncomingMessage): Principal | undefined {
    return this.signedHeads.judge(request, this.options.signatures!).signer;
  }

  /** Throws `unauthorized` if the signature does not match this request, or was used before. */
  signer(request: IncomingMessage, body: BodyHash, what: "prediction" | "other"): Principal {
    const { method, url, headers } = request;
    const rules = this.options.signatures!;
    const nowMs = wallMs();
    const head = checkSignedHead(headers, rules, nowMs);
    const { bodyHash } = this.signedHeads.judge(request, rules);
    verifySignature({ method: method!, url: url!, headers }, body, head, bodyHash);
    const isRead = method === "GET" || method === "HEAD" || method === "OPTIONS";
    const mayRepeat = isRead || (what === "prediction" && rules.repeats === "predictions");
    const verdict = this.usedSignatures.use(head, nowMs);
    if (verdict === "new" || (verdict === "repeated" && mayRepeat)) return head.principal;
    throw usedBefore(verdict);
  }

  /**
   * Returns who sends the request, and sets the headers of a rate limit. Throws `unauthorized`, `forbidden` or
   * `rate_limited`. `tokenPrincipal` is the principal of a verified token.
   */
  assert(
    request: IncomingMessage,
    response: ServerResponse,
    need: Need,
    tokenPrincipal: Principal | undefined,
  ): Principal {
    const principal = tokenPrincipal ?? this.usedKey(request);
    if (principal === undefined) throw this.missing(request, need);
    // First: the rate also limits requests that the key may not make.
    this.count(principal, response);
    return assertOpens(principal, need);
  }

  private missing({ headers, url }: IncomingMessage, need: Need): ServiceError {
    const isPresigned = this.options.signatures !== undefined && PRESIGNED.test(url!);
    if (presented(headers) === undefined && isPresigned)
      return refused(
        "signatures in the address (presigned URLs) are not taken; sign the Authorization header",
      );
    return unauthorized(presented(headers), need.scope);
  }

  /** The same object as before only if no key was created or revoked since. */
  get keysVersion(): object {
    return this.options.keysVersion();
  }

  /**
   * The error that the request's token or signature gets at every address; a promise the first time that the token is
   * seen. Undefined if it presents neither, or one that may admit it: some signatures show that only with the body.
   */
  presentedFault(request: IncomingMessage): ServiceError | undefined | Promise<ServiceError | undefined> {
    if (!this.isSigned(request)) {
      const principal = this.tokenPrincipal(request);
      return principal instanceof Promise ? principal.then(() => undefined, asServiceError) : undefined;
    }
    try {
      this.assertSignedHead(request);
      return undefined;
    } catch (error) {
      return asServiceError(error);
    }
  }

  /** Whether the request presents nothing that could admit it: no known key, no token, no signature. */
  isStranger(request: IncomingMessage): boolean {
    // A preflight has no signature, so nobody needs more than the response of every other address.
    if (this.isSigned(request)) return request.method === "OPTIONS";
    const key = presented(request.headers, this.isKnown);
    if (key === undefined) return true;
    if (this.options.jwt !== undefined && isToken(key)) return false;
    return !this.hasKey(request);
  }

  /** Whether the request presents a session of a browser, and no key. */
  isOfSession({ headers }: IncomingMessage): boolean {
    return isSessionText(presented(headers));
  }

  /** Whether the request presents a known key. */
  hasKey(request: IncomingMessage): boolean {
    return this.keyPrincipal(request) !== undefined;
  }

  /** The principal of the key that the request presents; undefined if it presents none that is known. */
  keyPrincipal({ headers }: IncomingMessage): Principal | undefined {
    const key = presented(headers, this.isKnown);
    return key === undefined ? undefined : this.options.findKey(sha256Of(key));
  }

  /** Whether the request's key or token is still valid. A signature is good for its one response. */
  isStillOpen(request: IncomingMessage): boolean {
    // A key that came with the signature did not admit the request.
    if (this.isSigned(request)) return true;
    const key = presented(request.headers, this.isKnown);
    if (key === undefined) return true;
    if (this.options.jwt !== undefined && isToken(key)) return this.options.jwt.isCurrent(key);
    return this.options.findKey(sha256Of(key)) !== undefined;
  }

  /** Counts a request that the controller will judge: its key is used, and may have a rate limit. Throws `rate_limited`. */
  countOnly(request: IncomingMessage, response: ServerResponse): void {
    const principal = this.usedKey(request);
    if (principal !== undefined) this.count(principal, response);
  }

  private usedKey(request: IncomingMessage): Principal | undefined {
    const principal = this.keyPrincipal(request);
    if (principal !== undefined) this.options.onUsed(principal.id);
    return principal;
  }

  private count(principal: Principal, response: ServerResponse): void {
    if (principal.rate === null) return;
    const { limit, remaining, resetS, isAllowed } = this.limits.take(
      principal.id,
      principal.rate,
      performance.now(),
    );
    response.setHeader("ratelimit-limit", limit);
    response.setHeader("ratelimit-remaining", remaining);
    response.setHeader("ratelimit-reset", resetS);
    if (isAllowed) return;
    const message = `the key ${principal.id} may make ${principal.rate.requests} requests in ${principal.rate.seconds} s; try again in ${resetS} s`;
    throw new ServiceError("rate_limited", message, { retryAfterS: resetS });
  }
}

/**
 * Drops the head of a request, except what `isStillOpen` and `hasKey` read. It has up to 40 KB. A prediction keeps it only
 * until it is answered (RequestHead), and its stream may last long after that.
 */
export function keepCredentials(request: IncomingMessage): void {
  const { headers } = request;
  const kept = isSessionText(presented(headers)) ? KEPT_OF_SESSION : KEPT;
  request.rawHeaders = [];
  request.headers = {};
  for (const name of kept) if (headers[name] !== undefined) request.headers[name] = headers[name];
}

function usedBefore(verdict: Verdict): ServiceError {
  if (verdict === "too_old")
    return refused(
      "this access key has signed so many requests that only its newest signatures are accepted; sign the request again",
    );
  return refused(
    "it was used before; sign each request separately. Equal requests within one second have the same signature: also sign a header that differs, such as X-Amz-Nonce",
  );
}

/** The error for a caller without a key, the same at every address. */
export function refusal({ headers }: IncomingMessage): ServiceError {
  return unauthorized(presented(headers), "predict");
}

function presented(
  headers: IncomingMessage["headers"],
  isKnown: (text: string) => boolean = () => false,
): string | undefined {
  return keyOf(headers as KeyHeaders, isKnown);
}

/** Whether the text has the form of a token. Quern's keys contain no dots. */
function isToken(text: string): boolean {
  return text.split(".").length === 3;
}
