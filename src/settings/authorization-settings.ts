/** The server's settings for callers without keys of Quern: tokens of an issuer, and requests with an AWS signature. */
import { asGiven, credentials, list, oneOf, optional, url, urlOrFile } from "./setting-values.ts";

export const AUTHORIZATION_SETTINGS = {
  jwtIssuer: {
    env: "QUERN_JWT_ISSUER",
    option: "--jwt-issuer <url>",
    default: "",
    unit: "URL",
    help: "accept JSON Web Tokens of this issuer as well as keys; needs --jwt-audience",
    parse: optional(url),
  },
  jwtAudience: {
    env: "QUERN_JWT_AUDIENCE",
    option: "--jwt-audience <name>",
    default: "",
    unit: "name",
    help: "audience that a token must have",
    parse: asGiven,
  },
  jwtJwks: {
    env: "QUERN_JWT_JWKS",
    option: "--jwt-jwks <url or file>",
    default: "",
    unit: "URL or file",
    help: "keys of the issuer; the default is its /.well-known/jwks.json",
    parse: urlOrFile,
  },
  jwtScopesClaim: {
    env: "QUERN_JWT_SCOPES_CLAIM",
    option: "--jwt-scopes-claim <name>",
    default: "scope",
    unit: "name",
    help: "claim with the scopes of a token: predict, submit, view, admin, predict:NAME, submit:NAME",
    parse: asGiven,
  },
  sigv4Credentials: {
    env: "QUERN_SIGV4_CREDENTIALS",
    option: "--sigv4-credentials <file>",
    default: "",
    unit: "file",
    help: "accept requests signed with AWS Signature Version 4: a file like ~/.aws/credentials, with quern_scope in each part",
    parse: optional(credentials),
  },
  sigv4Region: {
    env: "QUERN_SIGV4_REGION",
    option: "--sigv4-region <list>",
    default: "",
    unit: "regions",
    help: "regions that requests may be signed for, such as eu-west-1,us-east-1; the default is any",
    parse: list,
  },
  sigv4Service: {
    env: "QUERN_SIGV4_SERVICE",
    option: "--sigv4-service <list>",
    default: "execute-api",
    unit: "services",
    help: "services that requests may be signed for",
    parse: list,
  },
  sigv4Repeats: {
    env: "QUERN_SIGV4_REPEATS",
    option: "--sigv4-repeats <what>",
    default: "reads",
    unit: "reads or predictions",
    help: "requests that may repeat a signature within five seconds: reads only, or predictions too",
    parse: oneOf("reads", "predictions"),
  },
} as const;
