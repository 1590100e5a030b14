/**
 * Every setting of the server and the command line, in one table, and the only reader of `process.env`. A command-line
 * option wins over its environment variable, which wins over the default.
 */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { PREDICTION_BYTES_LIMIT_DEFAULT } from "./contracts/limits/predictions.ts";
import { packageRoot } from "./contracts/package-root.ts";
import {
  address,
  asGiven,
  bytes,
  command,
  cpuMillis,
  credentials,
  days,
  directories,
  directory,
  file,
  flag,
  integer,
  list,
  oneOf,
  optional,
  publicUrl,
  url,
  urlOrFile,
} from "./setting-values.ts";

/** Settings of the server. `parse` converts a text to a value. Its errors follow the option's name. */
export const SERVER_SETTINGS = {
  listen: {
    env: "QUERN_LISTEN",
    option: "--listen <host:port>",
    default: "127.0.0.1:8420",
    unit: "address",
    help: "where to take requests; port 0 is any free one",
    parse: address,
  },
  dataDir: {
    env: "QUERN_DATA_DIR",
    option: "--data-dir <dir>",
    default: "$XDG_STATE_HOME/quern",
    unit: "directory",
    help: "where everything is kept",
    parse: directory,
  },
  python: {
    env: "QUERN_PYTHON",
    option: "--python <command>",
    default: "python3",
    unit: "command",
    help: "the Python (3.9 or later) that predictors run with",
    parse: command,
  },
  cpus: {
    env: "QUERN_CPUS",
    option: "--cpus <number>",
    default: "",
    unit: "CPUs",
    help: "what replicas and workers may reserve together by compute.cpu, also more than the machine has, which is the default",
    parse: optional(cpuMillis),
  },
  memory: {
    env: "QUERN_MEMORY",
    option: "--memory <size>",
    default: "",
    unit: "size",
    help: "the same of compute.mem, such as 8Gi; the machine's, where not given",
    parse: optional(bytes),
  },
  gpus: {
    env: "QUERN_GPUS",
    option: "--gpus <list>",
    default: "",
    unit: "indices",
    help: "the GPUs to give out by compute.gpu, such as 0,1, or none; those that nvidia-smi shows, where not given",
    parse: asGiven,
  },
  keepJobs: {
    env: "QUERN_KEEP_JOBS",
    option: "--keep-jobs <days>",
    default: "14",
    unit: "days",
    help: "how long batches, files and logs of jobs that succeeded are kept; their records stay",
    parse: days,
  },
  keepFailedJobs: {
    env: "QUERN_KEEP_FAILED_JOBS",
    option: "--keep-failed-jobs <days>",
    default: "60",
    unit: "days",
    help: "the same of all other jobs, with their failures",
    parse: days,
  },
  keepEnvironments: {
    env: "QUERN_KEEP_ENVIRONMENTS",
    option: "--keep-environments <days>",
    default: "14",
    unit: "days",
    help: "how long a Python environment is kept that no deployed version and no unfinished job needs",
    parse: days,
  },
  secretNames: {
    env: "QUERN_SECRET_NAMES",
    option: "--secret-names <list>",
    default: "",
    unit: "names",
    help: "names of configuration values that only admin keys see, beside the usual ones, such as license,pin code",
    parse: list,
  },
  publicUrl: {
    env: "QUERN_PUBLIC_URL",
    option: "--public-url <url>",
    default: "",
    unit: "URL",
    help: "how clients reach this server, for addresses in answers",
    parse: optional(publicUrl),
  },
  controlListen: {
    env: "QUERN_CONTROL_LISTEN",
    option: "--control-listen <host:port>",
    default: "",
    unit: "address",
    help: "where to take /-/… instead, and APIs with api_gateway: none too; for an inner network",
    parse: optional(address),
  },
  trustedProxies: {
    env: "QUERN_TRUSTED_PROXIES",
    option: "--trusted-proxies <list>",
    default: "",
    unit: "networks",
    help: "proxies whose X-Forwarded-Proto, -Host and -Prefix are believed, such as 127.0.0.1,10.0.0.0/8",
    parse: list,
  },
  tlsCert: {
    env: "QUERN_TLS_CERT",
    option: "--tls-cert <file>",
    default: "",
    unit: "file",
    help: "a certificate (PEM, with its chain): requests are taken by TLS; read again when it changes",
    parse: optional(file),
  },
  tlsKey: {
    env: "QUERN_TLS_KEY",
    option: "--tls-key <file>",
    default: "",
    unit: "file",
    help: "the certificate's key (PEM)",
    parse: optional(file),
  },
  jwtIssuer: {
    env: "QUERN_JWT_ISSUER",
    option: "--jwt-issuer <url>",
    default: "",
    unit: "URL",
    help: "take JSON Web Tokens of this issuer beside keys; needs --jwt-audience",
    parse: optional(url),
  },
  jwtAudience: {
    env: "QUERN_JWT_AUDIENCE",
    option: "--jwt-audience <name>",
    default: "",
    unit: "name",
    help: "whom a token must be for",
    parse: asGiven,
  },
  jwtJwks: {
    env: "QUERN_JWT_JWKS",
    option: "--jwt-jwks <url or file>",
    default: "",
    unit: "URL or file",
    help: "the issuer's keys; its /.well-known/jwks.json, where not given",
    parse: urlOrFile,
  },
  jwtScopesClaim: {
    env: "QUERN_JWT_SCOPES_CLAIM",
    option: "--jwt-scopes-claim <name>",
    default: "scope",
    unit: "name",
    help: "the claim that says what a token opens: predict, submit, admin, predict:NAME, submit:NAME",
    parse: asGiven,
  },
  sigv4Credentials: {
    env: "QUERN_SIGV4_CREDENTIALS",
    option: "--sigv4-credentials <file>",
    default: "",
    unit: "file",
    help: "take requests signed with AWS Signature Version 4: a file like ~/.aws/credentials, with quern_scope in each part",
    parse: optional(credentials),
  },
  sigv4Region: {
    env: "QUERN_SIGV4_REGION",
    option: "--sigv4-region <list>",
    default: "",
    unit: "regions",
    help: "the regions that requests may be signed for, such as eu-west-1,us-east-1; any, where not given",
    parse: list,
  },
  sigv4Service: {
    env: "QUERN_SIGV4_SERVICE",
    option: "--sigv4-service <list>",
    default: "execute-api",
    unit: "services",
    help: "the services that requests may be signed for",
    parse: list,
  },
  sigv4Repeats: {
    env: "QUERN_SIGV4_REPEATS",
    option: "--sigv4-repeats <what>",
    default: "reads",
    unit: "reads or predictions",
    help: "what may come again with the same signature within five seconds: reads only, or predictions too",
    parse: oneOf("reads", "predictions"),
  },
  gateways: {
    env: "QUERN_GATEWAYS",
    option: "--gateways <number>",
    default: "1",
    unit: "processes",
    help: "how many processes take requests; one is enough for tens of thousands a second",
    parse: integer(1, 64, "a number from 1 to 64"),
  },
  maxBody: {
    env: "QUERN_MAX_BODY",
    option: "--max-body <bytes>",
    default: String(PREDICTION_BYTES_LIMIT_DEFAULT),
    unit: "bytes",
    help: "the largest body of a real-time prediction",
    parse: integer(1, Number.MAX_SAFE_INTEGER, "a number of bytes"),
  },
  allowLocalRoot: {
    env: "QUERN_ALLOW_LOCAL_ROOT",
    option: "--allow-local-root <dir>",
    default: "",
    unit: "directory",
    help: "a directory that jobs may read by file:// (repeatable; in the variable, separated by colons)",
    parse: directories,
  },
  continueJobs: {
    env: "",
    option: "--continue-jobs",
    default: "",
    unit: "flag",
    help: "continue jobs that are paused because the data directory is a copy",
    parse: flag,
  },
  insecureNoAuth: {
    env: "",
    option: "--insecure-no-auth",
    default: "",
    unit: "flag",
    help: "listen on other than loopback without keys",
    parse: flag,
  },
  killAt: {
    env: "QUERN_TEST_KILL_AT",
    option: "",
    default: "",
    unit: "kill point",
    help: "for tests: where the controller kills itself",
    parse: asGiven,
  },
} as const;

/** Settings of the command line. */
const CLIENT_SETTINGS = {
  host: {
    env: "QUERN_HOST",
    option: "",
    default: "http://127.0.0.1:8420",
    unit: "URL",
    help: "the server that the command line talks to",
  },
  apiKey: {
    env: "QUERN_API_KEY",
    option: "",
    default: "",
    unit: "key",
    help: "the key that the command line sends; without it, the admin token of the data directory",
  },
} as const;

export const SETTINGS = { ...SERVER_SETTINGS, ...CLIENT_SETTINGS };

export type SettingName = keyof typeof SETTINGS;

/** The server's environment, a part of which user code may see. */
export const serverEnvironment: NodeJS.ProcessEnv = process.env;

export const pythonRuntimeDir = join(packageRoot, "python");

export function setting(name: SettingName, given?: string): string {
  return (
    given ??
    process.env[SETTINGS[name].env] ??
    (name === "dataDir" ? defaultDataDir() : SETTINGS[name].default)
  );
}

/** QUERN_HOST, if it is set. */
export function givenHost(): string | undefined {
  return process.env[SETTINGS.host.env];
}

function defaultDataDir(): string {
  return join(process.env.XDG_STATE_HOME ?? join(homedir(), ".local", "state"), "quern");
}

/** The directory of the command line's own files: `$XDG_CONFIG_HOME/quern`. */
export function configDirectory(): string {
  return join(process.env.XDG_CONFIG_HOME ?? join(homedir(), ".config"), "quern");
}

export function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string }).version;
}

/** Whether colours and progress bars are switched off. They also need a terminal. */
export function isPlainOutput(): boolean {
  return process.env.NO_COLOR !== undefined || process.env.CI !== undefined || process.env.TERM === "dumb";
}

/**
 * A short directory for sockets and notes, because a path of a Unix socket over 107 bytes is silently truncated. Throws
 * if another user owns it.
 */
export function runtimeDirectory(dataDir: string): string {
  const id = createHash("sha256").update(resolve(dataDir)).digest("hex").slice(0, 8);
  const directory = join(process.env.XDG_RUNTIME_DIR ?? tmpdir(), `quern-${process.getuid!()}-${id}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const info = lstatSync(directory);
  if (!info.isDirectory() || info.uid !== process.getuid!() || (info.mode & 0o077) !== 0) {
    throw new Error(
      `${directory} must be a directory of yours with mode 0700; remove it, or set XDG_RUNTIME_DIR`,
    );
  }
  if (directory.length > 80)
    throw new Error(`${directory} is too long for sockets; set XDG_RUNTIME_DIR to a shorter directory`);
  return directory;
}
