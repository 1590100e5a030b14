/**
 * The options of a server: one value for each setting of the table (server-settings.ts), and values derived from
 * several.
 */
import { SERVER_SETTINGS } from "./server-settings.ts";
import { DAY_MS } from "./setting-values.ts";

export type ServerSetting = keyof typeof SERVER_SETTINGS;
/** The texts as given, or the defaults. */
export type SettingTexts = Record<ServerSetting, string>;
type Values = { [Name in ServerSetting]: ReturnType<(typeof SERVER_SETTINGS)[Name]["parse"]> };

export interface ServerOptions extends Values {
  /** `--tls-cert` and `--tls-key`. */
  tls: { cert: string; key: string } | undefined;
  /** Set if tokens of an issuer are accepted. */
  jwt: { issuer: string; audience: string; jwks: string; scopesClaim: string } | undefined;
  /** Set if AWS signatures are accepted. */
  sigv4:
    | { credentials: string; regions: string[]; services: string[]; repeats: "reads" | "predictions" }
    | undefined;
}

export const SERVER_SETTING_NAMES = Object.keys(SERVER_SETTINGS) as ServerSetting[];

/** Throws an error that names the option, what was given and what is allowed. */
export function readServerOptions(texts: SettingTexts): ServerOptions {
  const values = Object.fromEntries(
    SERVER_SETTING_NAMES.map((name) => [name, readServerOption(name, texts[name])]),
  );
  const options = values as unknown as Values;
  checkKept(options);
  checkState(options);
  checkEngine(options);
  return { ...options, tls: tlsOf(options), jwt: jwtOf(options), sigv4: sigv4Of(options) };
}

/** Throws an error that names the option, what was given (but no secret) and what is allowed. */
export function readServerOption<Name extends ServerSetting>(name: Name, text: string): Values[Name] {
  const { option, env, parse, unit } = SERVER_SETTINGS[name];
  try {
    return parse(text) as Values[Name];
  } catch (error) {
    const [called] = (option || env).split(" ");
    const got = unit === "secret" ? "" : ` (got "${text}")`;
    throw new Error(`${called} ${(error as Error).message}${got}`, { cause: error });
  }
}

/** The data of a job needs its record. */
function checkKept({ keepRecords, keepJobs, keepFailedJobs }: Values): void {
  const least = Math.max(keepJobs, keepFailedJobs);
  if (keepRecords === undefined || keepRecords >= least) return;
  throw new Error(
    `--keep-records must be at least as long as --keep-jobs and --keep-failed-jobs (${least / DAY_MS} days): give more days, or keep the data for less`,
  );
}

/** A state without its database cannot be used: SQLite's file would be what the data directory must not have. */
function checkState({ state, database }: Values): void {
  if (state === undefined || database !== undefined) return;
  throw new Error(
    "--state needs --database postgres://…: SQLite keeps its database in the data directory, which --state makes a cache; give a PostgreSQL database too, or leave --state out and use `quern backup`",
  );
}

/** Pods go on while a controller is gone, and another one goes on with them: what it knows must not be on its disk. */
function checkEngine({ engine, database, workerImage }: Values): void {
  if (engine === "local") return;
  if (database === undefined)
    throw new Error(
      "--engine kubernetes needs --database postgres://…: SQLite keeps its database on one machine's disk, and is lost with it while the pods go on; give a PostgreSQL database, or use --engine local",
    );
  if (workerImage === undefined)
    throw new Error(
      "--engine kubernetes needs --worker-image: the image of workers' pods, which deploy/worker.Dockerfile makes",
    );
}

function tlsOf({ tlsCert: cert, tlsKey: key }: Values): ServerOptions["tls"] {
  if (cert === undefined && key === undefined) return undefined;
  if (cert !== undefined && key !== undefined) return { cert, key };
  throw new Error(`${cert === undefined ? "--tls-cert" : "--tls-key"} must be a file: both are needed`);
}

function jwtOf({ jwtIssuer: issuer, jwtAudience: audience, jwtJwks, jwtScopesClaim }: Values) {
  if (issuer === undefined) return undefined;
  if (audience === "") throw new Error("--jwt-audience must give the audience that tokens must have");
  const jwks = jwtJwks || `${issuer.replace(/\/+$/, "")}/.well-known/jwks.json`;
  return { issuer, audience, jwks, scopesClaim: jwtScopesClaim };
}

function sigv4Of({ sigv4Credentials, sigv4Region, sigv4Service, sigv4Repeats }: Values) {
  if (sigv4Credentials === undefined) return undefined;
  return {
    credentials: sigv4Credentials,
    regions: sigv4Region,
    services: sigv4Service,
    repeats: sigv4Repeats,
  };
}
