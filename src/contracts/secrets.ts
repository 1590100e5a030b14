/**
 * Decides which values are hidden from readers who are not administrators: by the names of configuration values, and by
 * patterns in texts. Pure. It does not recognize names in other languages, or a secret with a harmless name.
 */

export const HIDDEN = "***";

/**
 * A value is hidden if the words of its name contain one of these in a row. `dbPassword`, `DB_PASSWORD` and
 * `db-password` are the same two words. `$` matches only at the end of the name, so that `max_tokens` and `token_count`
 * are shown.
 */
export const SECRET_NAMES = [
  ...["password", "passwd", "pwd", "passphrase", "passcode"],
  ...["secret", "secrets", "token$", "credential", "credentials", "signature"],
  ...[
    "api key",
    "apikey",
    "access key",
    "accesskey",
    "private key",
    "privatekey",
    "secret key",
    "account key",
  ],
  ...["encryption key", "signing key", "shared key", "connection string", "dsn", "authorization", "cookie"],
] as const;

/** Secret parameters of URLs, in lower case: those of the stores' presigned URLs, and tokens. */
const SECRET_PARAMETERS =
  /([?&;](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|googleaccessid|signature|sig|token|access_token|api_key|apikey|password|client_secret)=)[^&#\s"'<>]+/gi;
/**
 * The user, and perhaps a password, before the @ of a URL. Many clients accept a password with `/`, `?` or `#` in it,
 * which ends the authority by RFC 3986; what begins with digits and such a character is a port.
 */
const USER_OF_URL = /:\/\/(?:[^\s/?#"'<>]+|[^\s/?#:@"'<>]*:(?!\d*[/?#])(?:(?!:\/\/)[^\s"'<>]){1,256})@/g;
/** The text must have a character that words of prose do not have, so that "basic statistics" stays. */
const AUTHORIZATION = /\b([Bb]earer|[Bb]asic|BEARER|BASIC) +(?=[\w.~+/=-]*[\dA-Z=])[\w.~+/=-]{8,}/g;
/** What signs a request: values by the names that AWS, Google and Azure give them, in a header, in XML and in JSON. */
const SIGNED = /\b(Credential|Signature)=[^\s,;&"'<>\\]+/g;
const SHARED_KEY = /\b(SharedKey(?:Lite)?) +[\w-]+:[\w+/=]+/g;
const NAMED =
  /\b(x-amz-security-token|AWSAccessKeyId|SignatureProvided)(\\?["']? ?[:=>] ?\\?["']?)[^\s,;&"'<>\\]+/gi;
const SIGNED_TEXT =
  /\b((?:StringToSign|CanonicalRequest)(?:Bytes)?(?:>|\\?["']? ?[:=] ?\\?["']?)|string to sign: ?')[^<"']+/gi;
const OWN_KEY = /\bquern_[\w-]{32}/g;
/** What all of the patterns above need. Nearly all values have none of it, and cost one search instead of eight. */
const PERHAPS_SECRET = /[:= >]|quern_/;

/** Hides the secrets in a text: in URLs, and keys. */
export function hideInText(text: string): string {
  if (!PERHAPS_SECRET.test(text)) return text;
  return text
    .replace(USER_OF_URL, `://${HIDDEN}@`)
    .replace(SECRET_PARAMETERS, `$1${HIDDEN}`)
    .replace(AUTHORIZATION, `$1 ${HIDDEN}`)
    .replace(SIGNED, `$1=${HIDDEN}`)
    .replace(SHARED_KEY, `$1 ${HIDDEN}`)
    .replace(NAMED, `$1$2${HIDDEN}`)
    .replace(SIGNED_TEXT, `$1${HIDDEN}`)
    .replace(OWN_KEY, `quern_${HIDDEN}`);
}

/**
 * Hides Quern's own keys in the output of user code and changes nothing else: an HTTP client logs the address with the
 * capability.
 */
export function hideOwnKeys(text: string): string {
  return text.includes("quern_") ? text.replace(OWN_KEY, `quern_${HIDDEN}`) : text;
}

/** The address of a database without its password and parameters. */
export function shownDatabase(url: string): string {
  const { protocol, username, host, pathname } = new URL(url);
  return `${protocol}//${username === "" ? "" : `${username}@`}${host}${pathname}`;
}

export class SecretNames {
  /** All names in one expression, for the words of a name between single spaces. */
  private readonly secret: RegExp;
  /** A text without any of these, the first words of the names, names no secret: most names need no more than this. */
  private readonly perhapsSecret: RegExp;

  /** `more`: names besides those of the list, in any spelling. */
  constructor(more: readonly string[] = []) {
    const names = [...SECRET_NAMES, ...more.map(wordsOf)];
    this.secret = new RegExp(names.map(patternOf).join("|"), "u");
    // Upper case of other scripts depends on what surrounds it, so such names are not looked for beforehand.
    const firstWords = names.map((name) => (isAscii(name) ? name.replace(/[ $].*/, "") : ""));
    this.perhapsSecret = new RegExp(firstWords.join("|"));
  }

  /** Numbered and plural names (`token_1`, `password2`, `api_keys`) are secrets too. */
  has(name: string): boolean {
    if (!this.perhapsSecret.test(name.toLowerCase())) return false;
    return this.secret.test(` ${wordsOf(name.replace(/\d+/g, " "))} `);
  }

  /** A copy with its secrets hidden, at any depth. Values other than plain objects and lists are returned unchanged. */
  hide(value: unknown): unknown {
    if (typeof value === "string") return hideInText(value);
    if (Array.isArray(value)) return value.map((item) => this.hide(item));
    if (!isPlain(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        this.has(name) ? hiddenValue(member) : this.hide(member),
      ]),
    );
  }

  /** Hides secrets in an API's configuration. All variables of `env` are hidden, whatever their names. */
  hideInSpec(spec: unknown): unknown {
    if (!isPlain(spec) || !isPlain(spec.predictor)) return this.hide(spec);
    const { env } = spec.predictor;
    const shown = this.hide(spec) as Record<string, Record<string, unknown>>;
    if (!isPlain(env)) return shown;
    const hiddenEnv = Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN]));
    return { ...shown, predictor: { ...shown.predictor, env: hiddenEnv } };
  }
}

/** Null and booleans are shown: that a secret is not set, or is switched on, is not secret. */
function hiddenValue(value: unknown): unknown {
  return value === null || value === undefined || typeof value === "boolean" ? value : HIDDEN;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
}

/** A secret's words as they are, or each of them as the plural. `token$` is not looked for as a plural. */
function patternOf(name: string): string {
  if (name.endsWith("$")) return ` ${name.slice(0, -1)} $`;
  const words = name.split(" ");
  const plural = words.map((word) => (word.endsWith("s") ? `${word}s` : `${word}s?`));
  return words.some((word) => word.endsWith("s"))
    ? ` ${name} | ${plural.join(" ")} `
    : ` ${plural.join(" ")} `;
}

function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text);
}

function wordsOf(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(" ");
}
