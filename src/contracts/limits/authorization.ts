/** Keys, tokens of an issuer, and requests signed with AWS Signature Version 4. */

/** Of a key's name, which is in lists and in lines of the audit. */
export const KEY_NAME_LENGTH_MAX = 100;

/** A session of a browser lasts a working day, so that nobody signs in twice a day. */
export const SESSION_MS = 12 * 3_600_000;
/** Sessions of one key, and of all: each is 300 bytes of the snapshot that every gateway has. More end the oldest. */
export const SESSIONS_OF_A_KEY_MAX = 20;
export const SESSIONS_MAX = 500;
/** Sessions that a request may have: those that pages at other ports of the host have set count, too. */
export const SESSIONS_OF_A_REQUEST_MAX = 8;
/**
 * Sign-ins of one key in a minute: each sends the routes to all gateways, which reads every deployed API. As many codes:
 * each is a line of the audit.
 */
export const SIGN_INS_OF_A_KEY_MAX = 60;
/** A code signs a browser in once, and within this time: `quern ui` opens the browser at once. */
export const SIGN_IN_CODE_MS = 60_000;
/** Codes of one key that nobody has used yet, and of all: 200 bytes each. More end the oldest. */
export const SIGN_IN_CODES_OF_A_KEY_MAX = 10;
export const SIGN_IN_CODES_MAX = 1_000;
/** The body of a sign-in: a key or a code, and 20 times that for white space. */
export const SIGN_IN_BODY_BYTES_LIMIT = 2_000;

/**
 * After a failure, a gateway waits this long before it fetches an issuer's keys again, and twice as long after each
 * further failure. So each gateway asks an issuer that is down twice a minute, however many tokens arrive. After an
 * issuer's restart its tokens work again within two seconds.
 */
export const JWKS_COOLDOWN_FIRST_MS = 1_000;
export const JWKS_COOLDOWN_MAX_MS = 30_000;
/**
 * A key that the issuer no longer publishes verifies no token after this time: a gateway that needs keys fetches them
 * again. That is a request in five minutes.
 */
export const JWKS_KEPT_MS = 5 * 60_000;
/**
 * While the issuer cannot be reached, or answers wrongly, the keys that it published last go on to verify for this long
 * after they were fetched. It outlasts a restart or a failed deployment of the issuer. On the other hand, whoever can
 * keep a gateway from the issuer makes a withdrawn key verify for as long.
 */
export const JWKS_USABLE_MS = 60 * 60_000;
/**
 * No token of a usable key waits for an issuer that has failed within this time: twice the longest pause, so that an
 * issuer that stays away keeps only the first token waiting. Until the issuer is asked, a token may use a key that is
 * withdrawn by now.
 */
export const JWKS_FAILED_LATELY_MS = 2 * JWKS_COOLDOWN_MAX_MS;
/** An unknown key makes a gateway fetch the issuer's keys only if this time has passed since the last fetch. */
export const JWKS_ASKED_AGAIN_MS = 30_000;
/** The longest wait for the issuer's keys. */
export const JWKS_TIMEOUT_MS = 5_000;
/**
 * A token that was verified opens what it lists for this long, and is verified again afterwards. So a token whose key
 * is no longer published opens nothing after ten minutes.
 */
export const TOKEN_REMEMBERED_MS = 5 * 60_000;
/** A token in use is verified again after this time, without a request that waits for it. */
export const TOKEN_RENEWED_MS = 60_000;
/** Verified tokens that are remembered: some 500 bytes each. If there are more, all are verified again. */
export const TOKENS_REMEMBERED_MAX = 10_000;
/**
 * Tokens that a gateway verifies at once. Only new ones wait for the issuer's keys, up to five seconds, and each may hold
 * 150 KB: the head of its request, and the begin of its body.
 */
export const TOKENS_WAITING_MAX = 1_000;
/** The response with an issuer's keys. Issuers have two or three, of 500 to 2,000 bytes. */
export const JWKS_BYTES_MAX = 1024 * 1024;
export const JWKS_KEYS_MAX = 500;
/** OpenID Connect Core, section 2: the longest subject, in characters. */
export const TOKEN_SUBJECT_CHARACTERS_MAX = 255;
/**
 * Signatures that a gateway remembers, some 100 bytes each: 40 MB. One access key can sign 440 requests a second before
 * its window becomes shorter than 15 minutes. At 10,000 a second the window is 40 s.
 */
export const SIGNATURES_MAX = 400_000;
/**
 * A signature's time has a resolution of seconds. A request that was signed twice in one second arrives twice within
 * this time, even over a slow network.
 */
export const REPEATED_SIGNATURE_MS = 5_000;
/** Who did something is kept with it, in so many characters: a key's id has 18, the subject of a token any number. */
export const DONE_BY_LENGTH_MAX = 128;
