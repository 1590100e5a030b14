/** What the heads of signed requests show. Each is judged once, because that takes up to 0.8 ms and several places ask. */
import type { IncomingMessage } from "node:http";
import type { Principal } from "../../access/permission.ts";
import { checkSignedHead, type SignatureRules, verifyHead } from "../../access/sigv4.ts";
import { wallMs } from "../../base/clock.ts";
import { asServiceError, ServiceError } from "../../contracts/errors.ts";

interface JudgedHead {
  /** Undefined if only the body can prove it. */
  signer: Principal | undefined;
  /** The hash of the body with which the signature was verified. */
  bodyHash: string | undefined;
}

export class SignedHeads {
  private readonly judged = new WeakMap<IncomingMessage, JudgedHead | ServiceError>();

  /** Throws `unauthorized` if the head shows that the request cannot pass. */
  judge(request: IncomingMessage, rules: SignatureRules): JudgedHead {
    const known = this.judged.get(request) ?? judgeHead(request, rules);
    this.judged.set(request, known);
    if (known instanceof ServiceError) throw known;
    return known;
  }
}

function judgeHead(
  { method, url, headers }: IncomingMessage,
  rules: SignatureRules,
): JudgedHead | ServiceError {
  try {
    const head = checkSignedHead(headers, rules, wallMs());
    const bodyHash = verifyHead({ method: method!, url: url!, headers }, head);
    return { signer: bodyHash === undefined ? undefined : head.principal, bodyHash };
  } catch (error) {
    return asServiceError(error);
  }
}
