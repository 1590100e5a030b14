/**
 * Whether one request to a real-time API may pass, and whether it still may later: when its body is complete, and while
 * its response is streamed.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Need, Principal } from "../../access/permission.ts";
import { BodyHash } from "../../access/sigv4.ts";
import { addressOwner } from "../../base/fair/address-owner.ts";
import type { AddressRoute } from "../../contracts/routes.ts";
import { setOwner } from "../connections/owners.ts";
import { type Authorization, refusal } from "./authorization.ts";

/** If a body is complete this soon after its head, the key's expiry is not checked again. */
const BODY_AT_ONCE_MS = 10;

export interface AdmissionRules {
  authorization: Authorization;
  /** Whether an address that needed no key before needs one now. */
  asksForKey: (address: AddressRoute) => boolean;
}

export class Admission {
  private readonly rules: AdmissionRules;
  private readonly request: IncomingMessage;
  private readonly address: AddressRoute;
  private key: string | undefined;
  /** The version of the keys when the request was admitted. */
  private keysVersion: object | undefined;
  /** Of a signed request. */
  private bodyHash: BodyHash | undefined;

  constructor(rules: AdmissionRules, request: IncomingMessage, address: AddressRoute) {
    this.rules = rules;
    this.request = request;
    this.address = address;
  }

  /** The id of the key that admitted the request; undefined if none was needed, or it was refused. */
  get keyId(): string | undefined {
    return this.key;
  }

  /** To whom the body is charged: the key, or the client's address without one. */
  get sender(): string {
    return this.key ?? addressOwner(this.request.socket.remoteAddress);
  }

  /** The address needs no key. */
  admitAnyone(): void {
    this.keysVersion = this.rules.authorization.keysVersion;
  }

  /** Throws if the request may not pass. `tokenPrincipal` is the principal of a verified token. */
  assert(response: ServerResponse, tokenPrincipal: Principal | undefined): void {
    const { authorization } = this.rules;
    const need: Need = { scope: "predict", api: this.address.name };
    this.key = authorization.assert(this.request, response, need, tokenPrincipal).id;
    setOwner(this.request.socket, this.key);
    this.keysVersion = authorization.keysVersion;
  }

  /** Throws if the head of a signed request already shows that it cannot pass. */
  assertSignedHead(): void {
    this.key = this.rules.authorization.assertSignedHead(this.request)?.id;
  }

  /** Hashes the body of a signed request from now on, as it arrives. */
  hashBody(): void {
    const hash = new BodyHash(this.request.headers);
    this.bodyHash = hash;
    this.request.on("data", (part: Buffer) => hash.add(part));
  }

  /** Throws if the signature does not match the whole request, or its signer may not pass. After `hashBody`. */
  assertSigned(response: ServerResponse): void {
    this.assert(response, this.rules.authorization.signer(this.request, this.bodyHash!, "prediction"));
  }

  /**
   * Throws if the request would no longer be admitted. A body may arrive minutes after its head was checked. By then
   * the key may be revoked, or the server's first key created.
   */
  assertStillOpen(tookMs: number): void {
    const isAtOnce = tookMs < BODY_AT_ONCE_MS;
    if (isAtOnce && this.rules.authorization.keysVersion === this.keysVersion) return;
    if (!this.isStillOpen()) throw refusal(this.request);
  }

  /**
   * Whether the request would still be admitted: its key is valid, or the address still needs none. If the address
   * needs a key only now, the request must present a known one.
   */
  isStillOpen(): boolean {
    const { authorization, asksForKey } = this.rules;
    if (this.key !== undefined) return authorization.isStillOpen(this.request);
    return !asksForKey(this.address) || authorization.hasKey(this.request);
  }
}
