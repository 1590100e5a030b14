/** Reads the text of a setting. Each reader throws an error whose message follows the option's name. */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseCredentials } from "../access/sigv4.ts";
import { parseBytes, parseCpuMillis } from "../contracts/config/quantities.ts";
import { pathProblem } from "../contracts/store-paths.ts";

export const DAY_MS = 86_400_000;

/** Reads "" as undefined: the setting is not given. */
export function optional<T>(read: (text: string) => T): (text: string) => T | undefined {
  return (text) => (text === "" ? undefined : read(text));
}

export function asGiven(text: string): string {
  return text;
}

/** Any text is true, also "0". So a flag has no variable of the environment. */
export function flag(text: string): boolean {
  return text !== "";
}

/** Reads a TCP address. `localhost` and an empty host mean 127.0.0.1. */
export function address(text: string): { host: string; port: number } {
  const [, host, port] = /^(.*):(\d+)$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535) throw new Error("must be HOST:PORT");
  const isLocal = host === "localhost" || host === "";
  return { host: isLocal ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""), port: Number(port) };
}

/** Reads a program: a name is looked up in PATH, and a path stays the same in every working directory. */
export function command(text: string): string {
  return text.includes("/") ? resolve(text) : text;
}

export function urlOrFile(text: string): string {
  return text === "" || /^https?:/.test(text) ? text : resolve(text);
}

export function directory(text: string): string {
  return resolve(text);
}

export function file(text: string): string {
  if (!existsSync(text)) throw new Error("must be a file");
  return resolve(text);
}

/** Reads values that are separated by commas. */
export function list(text: string): string[] {
  return text.split(",").filter(Boolean);
}

/** Reads paths that are separated by NUL, which no path contains. */
export function directories(text: string): string[] {
  return text.split("\0").filter(Boolean).map(directory);
}

/** Converts days to milliseconds. */
export function days(text: string): number {
  const number = Number(text);
  if (text === "" || !(number >= 0 && Number.isFinite(number))) throw new Error("must be a number of days");
  return number * DAY_MS;
}

export function integer(least: number, most: number, what: string): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= least && number <= most) return number;
    throw new Error(`must be ${what}`);
  };
}

export function oneOf<Word extends string>(...words: Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((each) => each === text);
    if (word === undefined) throw new Error(`must be ${words.join(" or ")}`);
    return word;
  };
}

export function cpuMillis(text: string): number {
  const millis = parseCpuMillis(text);
  if (millis === undefined) throw new Error("must be a number of CPUs such as 4 or 500m");
  return millis;
}

export function bytes(text: string): number {
  const number = parseBytes(text);
  if (number === undefined) throw new Error("must be a size such as 8Gi or 500M");
  return number;
}

export function url(text: string): string {
  if (!URL.canParse(text)) throw new Error("must be a URL");
  return text;
}

/** Those that mean the same in each version of the client. It takes `require` for `verify-full`, and will not always. */
const SSL_MODES = ["disable", "verify-full", "no-verify"];

/** Reads the address of a PostgreSQL database. It may have a password, so no error shows it. */
export function databaseUrl(text: string): string {
  const form = "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE";
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) throw new Error(form);
  const { hostname, pathname, searchParams } = new URL(text);
  if (pathname.length < 2) throw new Error(`${form}: the name of the database is missing`);
  if (hostname.includes(","))
    throw new Error(`${form}, with one host: give a name that always leads to the primary server`);
  const mode = searchParams.get("sslmode") ?? "disable";
  if (!SSL_MODES.includes(mode))
    throw new Error(
      `has sslmode=${mode}; it must be one of ${SSL_MODES.join(", ")} (the latter encrypts, but trusts any server)`,
    );
  return text;
}

/** Reads the address of a prefix in an object store; it ends with a slash then. */
export function statePrefix(text: string): string {
  const problem = pathProblem(text);
  if (problem !== undefined) throw new Error(`must be a prefix such as s3://bucket/quern: ${problem}`);
  return text.startsWith("file://")
    ? `file://${resolve(text.slice("file://".length))}/`
    : `${text.replace(/\/+$/, "")}/`;
}

/** Reads a URL for use in headers: always ASCII, and without a trailing slash. */
export function publicUrl(text: string): string {
  if (!/^https?:\/\/[^?#@]+$/.test(text) || !URL.canParse(text))
    throw new Error("must be a URL such as https://example.com/models");
  return new URL(text).href.replace(/\/+$/, "");
}

/** Reads the URL of a TLS listener: no path, and no slash at its end. */
export function podUrl(text: string): string {
  if (!/^https:\/\/[^/?#@\s]+$/.test(text) || !URL.canParse(text))
    throw new Error("must be a URL such as https://quern.ml.svc:8423");
  return text;
}

/** Checks a file of credentials for AWS signatures by reading it once. */
export function credentials(text: string): string {
  try {
    parseCredentials(readFileSync(text, "utf8"));
  } catch (error) {
    throw new Error(`cannot be used: ${(error as Error).message}`, { cause: error });
  }
  return resolve(text);
}
