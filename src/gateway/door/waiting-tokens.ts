/**
 * Bounds the tokens that are being verified, and how many begin at once. Each may wait five seconds for an issuer that does not respond, and its
 * request waits with its head and the begin of its body. An address may have twice as many as stay free for others.
 */
import type { JwtVerifier } from "../../access/jwt.ts";
import type { Principal } from "../../access/permission.ts";
import { FairQueue } from "../../base/fair/fair-queue.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { TOKENS_WAITING_MAX } from "../../contracts/limits/authorization.ts";

const SHARE = 2;
/** Verifications that begin in one turn of the event loop: each takes 0.1 ms of it, and ends whenever a thread has done it. */
const BEGUN_EACH_TURN = 4;

export class WaitingTokens {
  private atOnce = 0;
  private readonly byOwner = new Map<string, number>();
  private readonly due = new FairQueue<() => void>(TOKENS_WAITING_MAX);
  private isTurning = false;

  /** Throws as `JwtVerifier.verify`, and `server_unavailable` if too many wait. `owner`: the client's address. */
  async verify(jwt: Pick<JwtVerifier, "verify">, token: string, owner: string): Promise<Principal> {
    const ofOwner = this.byOwner.get(owner) ?? 0;
    const left = TOKENS_WAITING_MAX - this.atOnce - 1;
    if (left < 0 || (ofOwner > 0 && ofOwner + 1 > SHARE * left)) throw tooManyWaiting();
    this.count(owner, 1);
    try {
      await this.turn(owner);
      return await jwt.verify(token);
    } finally {
      this.count(owner, -1);
    }
  }

  /** Addresses take turns, however many tokens one of them sends. */
  private turn(owner: string): Promise<void> {
    return new Promise((resolve) => {
      this.due.push(owner, resolve);
      this.beginSoon();
    });
  }

  private beginSoon(): void {
    if (this.isTurning) return;
    this.isTurning = true;
    setImmediate(() => {
      this.isTurning = false;
      for (let begun = 0; begun < BEGUN_EACH_TURN; begun++) {
        const begin = this.due.shift();
        if (begin === undefined) return;
        begin();
      }
      this.beginSoon();
    });
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
