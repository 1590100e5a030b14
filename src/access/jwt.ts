/**
 * Verifies JSON Web Tokens of a trusted issuer (RFC 7519) with its published keys (RFC 7517). One claim lists what a
 * token opens: `predict`, `submit`, `view`, `admin`, or `predict:NAME` and `submit:NAME` for one API.
 */
import { readFileSync } from "node:fs";
import { createLocalJWKSet, decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { wallMs } from "../base/clock.ts";
import { ServiceError } from "../contracts/errors.ts";
import { TOKEN_SUBJECT_CHARACTERS_MAX } from "../contracts/limits/authorization.ts";
import { issuerKeys, KeysUnavailable } from "./issuer-keys.ts";
import { type Principal, permissionsOf, sha256Of } from "./permission.ts";

const CLOCK_TOLERANCE_S = 30;
/** Verified tokens are remembered until they expire, because verifying one costs more than a prediction. */
const REMEMBERED_MAX = 10_000;
/** No symmetric algorithms: anyone who can verify a token could also make one. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

export interface JwtOptions {
  issuer: string;
  audience: string;
  /** A URL, or the path of a file. */
  jwks: string;
  scopesClaim: string;
}

export class JwtVerifier {
  private readonly options: JwtOptions;
  private readonly keys: JWTVerifyGetKey;
  private readonly remembered = new Map<string, { principal: Principal; expiresMs: number }>();

  /** Throws if `jwks` is a file without keys. */
  constructor(options: JwtOptions) {
    this.options = options;
    this.keys = /^https?:/.test(options.jwks)
      ? issuerKeys(options.jwks)
      : createLocalJWKSet(JSON.parse(readFileSync(options.jwks, "utf8")) as never);
  }

  /** The principal, if this token was verified before. */
  known(token: string): Principal | undefined {
    const found = this.remembered.get(sha256Of(token));
    return found !== undefined && found.expiresMs > wallMs() ? found.principal : undefined;
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
    try {
      const rules = {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_S,
        requiredClaims: ["exp"],
      };
      const { payload } = await jwtVerify(token, this.keys, rules);
      return this.remember(token, payload);
    } catch (error) {
      throw toServiceError(error, this.options);
    }
  }

  private remember(token: string, payload: JWTPayload): Principal {
    const expiresMs = payload.exp! * 1000;
    const principal = {
      id: `jwt:${subjectOf(payload)}`,
      permissions: permissionsOf(payload[this.options.scopesClaim]),
      rate: null,
      expiresMs: expiresMs + CLOCK_TOLERANCE_S * 1000,
    };
    if (this.remembered.size >= REMEMBERED_MAX) this.remembered.clear();
    this.remembered.set(sha256Of(token), { principal, expiresMs });
    return principal;
  }
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
  if (error instanceof KeysUnavailable || error instanceof errors.JWKSTimeout)
    // The issuer's address and response go to the log only. A caller could provoke this error with a token that names
    // an unknown key.
    return new ServiceError(
      "server_unavailable",
      "the keys of the token issuer cannot be fetched now; try again later",
      {
        cause: new Error(`the keys at ${jwks} cannot be fetched: ${message}`, { cause: error }),
        retryAfterS: error instanceof KeysUnavailable ? error.retryAfterS : 1,
      },
    );
  const why = error instanceof errors.JOSEError ? message : "the key that the token names cannot be used";
  return new ServiceError("unauthorized", `the token is not valid: ${why}`, { cause: error });
}
