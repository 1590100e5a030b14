/**
 * Which values are hidden from those who may read a record and are not its administrators: by the names of configuration values,
 * and by what stands in texts. Purely; a name in another language, or a secret under a harmless name, is not known here.
 */

export const HIDDEN = "***";

/**
 * A value is hidden if the words of its name have one of these in a row: `dbPassword`, `DB_PASSWORD` and `db-password` are the same two
 * words. `$`: only at the name's end, so that `max_tokens` and `token_count` are shown.
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

/** Parameters of URLs that open what the URL names: presigned ones of the stores, and tokens. In lower case. */
const SECRET_PARAMETERS =
  /([?&;](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|googleaccessid|signature|sig|token|access_token|api_key|apikey|password|client_secret)=)[^&#\s"'<>]+/gi;
/** Whoever stands before the @ of a URL. */
const USER_OF_URL = /:\/\/[^\s/?#"'<>]+@/g;
/** With a character that words of prose do not have: "basic statistics" stays. */
const AUTHORIZATION = /\b([Bb]earer|[Bb]asic|BEARER|BASIC) +(?=[\w.~+/=-]*[\dA-Z=])[\w.~+/=-]{8,}/g;
const OWN_KEY = /\bquern_[\w-]{32}/g;

/** A text without the secrets that stand in it: in URLs, and as keys. */
export function hideInText(text: string): string {
  return text
    .replace(USER_OF_URL, `://${HIDDEN}@`)
    .replace(SECRET_PARAMETERS, `$1${HIDDEN}`)
    .replace(AUTHORIZATION, `$1 ${HIDDEN}`)
    .replace(OWN_KEY, `quern_${HIDDEN}`);
}

/** What user code has printed is shown as it is but for these: an HTTP client logs the address with the capability. */
export function hideOwnKeys(text: string): string {
  return text.includes("quern_") ? text.replace(OWN_KEY, `quern_${HIDDEN}`) : text;
}

export class SecretNames {
  private readonly names: readonly string[];

  /** `more`: names beside those of the list, in any spelling. */
  constructor(more: readonly string[] = []) {
    this.names = [...SECRET_NAMES, ...more.map(wordsOf)].map((name) =>
      name.endsWith("$") ? ` ${name}` : ` ${name} `,
    );
  }

  /** One of several (`token_1`, `password2`, `api_keys`) is a secret too. */
  has(name: string): boolean {
    const words = ` ${wordsOf(name.replace(/\d+/g, " "))} `;
    const singular = words.replace(/s(?= )/g, "");
    return this.names.some((secret) =>
      secret.endsWith("$")
        ? words.endsWith(`${secret.slice(0, -1)} `)
        : words.includes(secret) || singular.includes(secret),
    );
  }

  /** The value with what is secret hidden, at any depth. What is no plain object or list is as it was. */
  hide(value: unknown): unknown {
    if (typeof value === "string") return hideInText(value);
    if (Array.isArray(value)) return value.map((item) => this.hide(item));
    if (!isPlain(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name,
        this.has(name) ? hidden(member) : this.hide(member),
      ]),
    );
  }

  /** An API's configuration: the variables of its environment have no harmless names. */
  hideInSpec(spec: unknown): unknown {
    if (!isPlain(spec) || !isPlain(spec.predictor)) return this.hide(spec);
    const { env } = spec.predictor;
    const shown = this.hide(spec) as Record<string, Record<string, unknown>>;
    if (!isPlain(env)) return shown;
    const hiddenEnv = Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN]));
    return { ...shown, predictor: { ...shown.predictor, env: hiddenEnv } };
  }
}

/** That something is not set, or is switched on, is no secret. */
function hidden(value: unknown): unknown {
  return value === null || value === undefined || typeof value === "boolean" ? value : HIDDEN;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype;
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
