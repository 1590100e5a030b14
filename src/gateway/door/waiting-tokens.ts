/**
 * Bounds the tokens that are being verified. Each may wait five seconds for an issuer that does not respond, and its
 * request waits with its head and the begin of its body. An address may have twice as many as stay free for others.
 */
import type { JwtVerifier } from "../../access/jwt.ts";
import type { Principal } from "../../access/permission.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { TOKENS_WAITING_MAX } from "../../contracts/limits/authorization.ts";

const SHARE = 2;

export class WaitingTokens {
  private atOnce = 0;
  private readonly byOwner = new Map<string, number>();

  /** Throws as `JwtVerifier.verify`, and `server_unavailable` if too many wait. `owner`: the client's address. */
  async verify(jwt: Pick<JwtVerifier, "verify">, token: string, owner: string): Promise<Principal> {
    const ofOwner = this.byOwner.get(owner) ?? 0;
    const left = TOKENS_WAITING_MAX - this.atOnce - 1;
    if (left < 0 || (ofOwner > 0 && ofOwner + 1 > SHARE * left)) throw tooManyWaiting();
    this.count(owner, 1);
    try {
      return await jwt.verify(token);
    } finally {
      this.count(owner, -1);
    }
  }

  private count(owner: string, change: number): void {
    this.atOnce += change;
    const ofOwner = (this.byOwner.get(owner) ?? 0) + change;
    if (ofOwner === 0) this.byOwner.delete(owner);
    else this.byOwner.set(owner, ofOwner);
  }
}

function tooManyWaiting(): ServiceError {
  const message = "too many tokens wait for the keys of their issuer; try again in a second";
  return new ServiceError("server_unavailable", message, { retryAfterS: 1 });
}
