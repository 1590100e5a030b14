/**
 * The credentials that a request to a store had, so that they can be hidden in the response: stores repeat them in
 * their errors, which callers read. Pure. It does not know a credential in another form, such as its base64.
 */
import { HIDDEN, hideInText } from "../contracts/secrets.ts";

/** Shorter ones are words, or in no need of hiding. */
const LENGTH_LEAST = 8;
/** Properties of an error that the SDK of AWS copies from the store's. */
const SECRET_PROPERTY = /sign|canonical|accesskey|token/i;

export class SentCredentials {
  private readonly shown: RegExp | undefined;

  constructor(headers: object, url = "") {
    const parts = Object.entries(headers).flatMap(([name, value]) =>
      /^(authorization|x-amz-security-token)$/i.test(name) ? partsOf(String(value)) : [],
    );
    // Whoever has the id of an upload to Google may write into it.
    const secret = /[?&](?:sig|upload_id)=([^&#]+)/.exec(url)?.[1];
    if (secret !== undefined) parts.push(secret, ...decoded(secret));
    const starts = parts.filter((part) => part.length >= LENGTH_LEAST).map(startOf);
    this.shown =
      starts.length === 0 ? undefined : new RegExp(`(?:${starts.join("|")})[^\\s,;&"'<>\\\\]*`, "g");
  }

  hideIn(text: string): string {
    return hideInText(this.shown === undefined ? text : text.replace(this.shown, HIDDEN));
  }

  /** Changes the error: what was made of it before, such as its stack, has the same words. */
  hideInError<T>(error: T): T {
    if (!(error instanceof Error)) return error;
    const properties = error as unknown as Record<string, unknown>;
    for (const name of new Set(["message", "stack", ...Object.keys(error)])) {
      const value = properties[name];
      if (typeof value !== "string") continue;
      const hidden = SECRET_PROPERTY.test(name) ? HIDDEN : this.hideIn(value);
      if (hidden !== value) properties[name] = hidden;
    }
    return error;
  }
}

/** `AWS4-HMAC-SHA256 Credential=ID/…, SignedHeaders=…, Signature=…`, `SharedKey account:signature`, or a token. */
function partsOf(value: string): string[] {
  if (value.includes("Credential="))
    return [...value.matchAll(/(?:Credential|Signature)=([^/,\s]+)/g)].map(([, part]) => part!);
  return [value.replace(/^(?:\w+ )?(?:[\w-]+:)?/, "")];
}

/** None if a store has made it up. */
function decoded(part: string): string[] {
  try {
    return [decodeURIComponent(part)];
  } catch {
    return [];
  }
}

/** The store's text may be cut in the middle of a credential, so that its start has to do. */
function startOf(part: string): string {
  return part.slice(0, LENGTH_LEAST).replace(/[^\w]/g, "\\$&");
}
