/**
 * Verifies JSON Web Tokens of a trusted issuer (RFC 7519) with its published keys (RFC 7517). One claim lists what a
 * token opens: `predict`, `submit`, `view`, `admin`, or `predict:NAME` and `submit:NAME` for one API.
 *
 * A verified token is remembered, because verifying one costs more than a prediction. But the issuer may withdraw the
 * key that signed it: so only for minutes, and no longer than all keys that were published then still are. While the
 * issuer is away, the keys that it published last go on to verify for an hour (docs/contract/access.md#withdrawn-keys).
 */
import { readFileSync } from "node:fs";
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import { inBackground } from "../base/boundary.ts";
import { wallMs } from "../base/clock.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  TOKEN_REMEMBERED_MS,
  TOKEN_RENEWED_MS,
  TOKEN_SUBJECT_CHARACTERS_MAX,
  TOKENS_REMEMBERED_MAX,
} from "../contracts/limits/authorization.ts";
import { KeysUnavailable } from "./issuer/cooling-fetch.ts";
import { IssuerKeys } from "./issuer/keys.ts";
import { type Principal, permissionsOf, sha256Of } from "./permission.ts";

const CLOCK_TOLERANCE_S = 30;
/** No symmetric algorithms: anyone who can verify a token could also make one. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

export interface JwtOptions {
  issuer: string;
  audience: string;
  /** A URL, or the path of a file. */
  jwks: string;
  scopesClaim: string;
}

/** A token that was verified. Its end is wall time, as the token says it; all else is monotonic. */
interface Remembered {
  principal: Principal;
  expiresMs: number;
  untilMs: number;
  /** When it is verified again, if it is still in use. */
  renewMs: number;
}

type Keys = Pick<IssuerKeys, "keyOf" | "usableUntilMs" | "away" | "askAgain">;

export class JwtVerifier {
  private readonly options: JwtOptions;
  private readonly keys: Keys;
  /** Replaced as a whole: what is being verified with the former keys must not be remembered. */
  private remembered = new Map<string, Remembered>();

  /** Throws if `jwks` is a file without keys. */
  constructor(options: JwtOptions) {
    this.options = options;
    this.keys = /^https?:/.test(options.jwks)
      ? new IssuerKeys(options.jwks, () => {
          this.remembered = new Map();
        })
      : keysOfFile(options.jwks);
  }

  /** The principal, if this token was verified a short time ago. */
  known(token: string): Principal | undefined {
    const found = this.remembered.get(sha256Of(token));
    const nowMs = performance.now();
    if (found === undefined || found.untilMs <= nowMs || found.expiresMs <= wallMs()) return undefined;
    if (found.renewMs <= nowMs) {
      found.renewMs = nowMs + TOKEN_RENEWED_MS;
      inBackground(this.renew(token));
    }
    return found.principal;
  }

  /** Whether a verified token is still current. Never throws. For an unverified token the result means nothing. */
  isCurrent(token: string): boolean {
    try {
      const { exp } = decodeJwt(token);
      return typeof exp === "number" && (exp + CLOCK_TOLERANCE_S) * 1000 > wallMs();
    } catch {
      return false;
    }
  }

  /** Throws `unauthorized` with the reason, or `server_unavailable` if the issuer's keys are not available. */
  async verify(token: string): Promise<Principal> {
    const { issuer, audience } = this.options;
    const { remembered } = this;
    try {
      const rules = {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ["exp"],
      };
      return this.remember(remembered, token, await this.payloadOf(token, rules));
    } catch (error) {
      throw toServiceError(error, this.options);
    }
  }

  /** A token that does not say which key it is signed with may be signed with one that is newer than the known ones. */
  private async payloadOf(token: string, rules: JWTVerifyOptions): Promise<JWTPayload> {
    try {
      return (await jwtVerify(token, this.keys.keyOf, rules)).payload;
    } catch (error) {
      const isUnverified = error instanceof errors.JWSSignatureVerificationFailed;
      if (!isUnverified || decodeProtectedHeader(token).kid !== undefined) throw error;
      if (!(await this.keys.askAgain())) throw this.keys.away ?? error;
      return (await jwtVerify(token, this.keys.keyOf, rules)).payload;
    }
  }

  /** Verifies a token that is in use. */
  private async renew(token: string): Promise<void> {
    try {
      await this.verify(token);
    } catch (error) {
      if ((error as ServiceError).code === "unauthorized") this.remembered.delete(sha256Of(token));
    }
  }

  private remember(into: Map<string, Remembered>, token: string, payload: JWTPayload): Principal {
    const expiresMs = payload.exp! * 1000;
    const principal = {
      id: `jwt:${subjectOf(payload)}`,
      permissions: permissionsOf(payload[this.options.scopesClaim]),
      rate: null,
      expiresMs: expiresMs + CLOCK_TOLERANCE_S * 1000,
    };
    const nowMs = performance.now();
    const untilMs = Math.min(nowMs + TOKEN_REMEMBERED_MS, this.keys.usableUntilMs);
    const times = { expiresMs, untilMs, renewMs: nowMs + TOKEN_RENEWED_MS };
    const hash = sha256Of(token);
    if (into.size >= TOKENS_REMEMBERED_MAX && !into.has(hash)) into.clear();
    into.set(hash, { principal, ...times });
    return principal;
  }
}

function keysOfFile(file: string): Keys {
  const keyOf = createLocalJWKSet(JSON.parse(readFileSync(file, "utf8")) as never);
  const askAgain = async () => false;
  return { keyOf, usableUntilMs: Number.POSITIVE_INFINITY, away: undefined, askAgain };
}

/** The subject appears in the audit and in the log of every request. */
function subjectOf({ sub }: JWTPayload): string {
  if (sub === undefined) return "-";
  if (typeof sub === "string" && sub.length <= TOKEN_SUBJECT_CHARACTERS_MAX) return sub;
  const message = `the token is not valid: "sub" must be a string of at most ${TOKEN_SUBJECT_CHARACTERS_MAX} characters`;
  throw new ServiceError("unauthorized", message);
}

function toServiceError(error: unknown, { jwks }: JwtOptions): ServiceError {
  if (error instanceof ServiceError) return error;
  const { message } = error as Error;
  if (error instanceof KeysUnavailable)
    // The issuer's address and response go to the log only. A caller could provoke this error with a token that names
    // an unknown key.
    return new ServiceError(
      "server_unavailable",
      "the keys of the token issuer cannot be fetched now; try again later",
      {
        cause: new Error(`the keys at ${jwks} cannot be fetched: ${message}`, { cause: error }),
        retryAfterS: error.retryAfterS,
      },
    );
  const why = error instanceof errors.JOSEError ? message : "the key that the token names cannot be used";
  return new ServiceError("unauthorized", `the token is not valid: ${why}`, { cause: error });
}
