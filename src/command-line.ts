/** The command line: options of all verbs, where commands go, and how failures become exit codes. */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { Command, CommanderError, Option } from "commander";
import { sha256Of } from "./access/permission.ts";
import { parseCredentials } from "./access/sigv4.ts";
import { addApiVerbs } from "./cli/api-verbs.ts";
import { Client, type ClientOptions } from "./cli/client.ts";
import { type CliContext, CliError, EXIT } from "./cli/context.ts";
import { findEnvironment, LOCAL, readEnvironments } from "./cli/environments.ts";
import { addJobVerbs, addQueueVerbs } from "./cli/job-verbs.ts";
import { isErrTerminal, isTerminal, Output, watchReader } from "./cli/output.ts";
import { addOwnVerbs } from "./cli/own-verbs.ts";
import { packageRoot } from "./contracts/package-root.ts";
import { parseBytes, parseCpuMillis } from "./contracts/quantities.ts";
import {
  configDirectory,
  givenHost,
  isPlainOutput,
  SETTINGS,
  type SettingName,
  setting,
  version,
} from "./settings.ts";

/** What else a server that is reached at a loopback address may be called. */
const LOOPBACK_NAMES: ReadonlyMap<string, readonly string[]> = new Map([
  ["127.0.0.1", ["localhost", "0.0.0.0"]],
  ["[::1]", ["localhost", "127.0.0.1", "0.0.0.0", "[::]"]],
]);

type Verb = (context: CliContext) => Promise<number>;

interface GlobalOptions {
  env?: string;
  app?: string;
  output?: "table" | "json";
  quiet?: boolean;
  color?: boolean;
  watch?: boolean;
  yes?: boolean;
}

/** Runs one command; resolves to its exit code. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  watchReader(() => process.exit(EXIT.success));
  let exitCode: number = EXIT.success;
  const program = buildProgram(
    async (verb) => {
      exitCode = await verb(contextOf(program.opts()));
    },
    (code) => {
      exitCode = code;
    },
  );
  try {
    await program.parseAsync(argv as string[]);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.success : EXIT.usage;
    new Output(false).fail(`error: ${(error as Error).message}\n`);
    return error instanceof CliError ? error.exitCode : EXIT.failed;
  }
}

/** All verbs, each handed to its file in cli/. */
export function buildProgram(run: (verb: Verb) => Promise<void>, onExit: (code: number) => void): Command {
  const program = new Command("quern")
    .description("Python prediction classes as real-time APIs and batch jobs")
    .exitOverride();
  const output = new Output(false);
  program.configureOutput({
    writeOut: (text) => output.print(text),
    writeErr: (text) => output.fail(text),
  });
  program.addOption(
    new Option("-o, --output <form>", "how to print data").choices(["table", "json"]).default("table"),
  );
  program
    .option("-e, --env <name>", "the environment to talk to (`quern env list`)")
    .option(
      "-a, --app <name>",
      "the declarative application that get, status, logs, predict, refresh or delete is about",
    )
    .option("-w, --watch", "print again every two seconds")
    .option("-y, --yes", "do not ask")
    .option("-q, --quiet", "print data only")
    .option("--no-color", "no bars, no colour");
  addServerVerb(program, onExit);
  addApiVerbs(program, run, version());
  addJobVerbs(program, run);
  addQueueVerbs(program, run);
  addOwnVerbs(program, run);
  return program;
}

function contextOf(options: GlobalOptions): CliContext {
  const dataDir = setting("dataDir");
  const environments = join(configDirectory(), "environments.json");
  const { name, ...target } = targetOf(options.env, dataDir, environments);
  const output = new Output(options.quiet === true);
  return {
    client: new Client(target),
    reconnect: () => contextOf(options),
    environment: name,
    output: options.output ?? "table",
    app: options.app,
    out: (text) => output.out(text),
    outAnew: (text) => output.outAnew(text),
    err: (text) => output.err(text),
    errLine: (text) => output.errLine(text),
    ask: (question) => output.ask(question),
    isInteractive: isErrTerminal() && options.color !== false && !isPlainOutput(),
    isTerminal: isTerminal(),
    isYes: options.yes === true,
    isWatch: options.watch === true,
    files: { environments, dataDir, examples: join(packageRoot, "examples") },
    python: setting("python"),
    databaseFault: async () => (await import("./database/open-database.ts")).findFault(dataDir),
    createKeyOffline: async (...args) => (await import("./offline-keys.ts")).createKeyOffline(...args),
  };
}

/**
 * `-e`, else QUERN_HOST, else the environment in use, else the server that uses the data directory, else the default
 * address. The admin token of the data directory goes to its own server only, which proves that it is that one. A server that the user
 * names gets the key that the user gives, and proves nothing.
 */
function targetOf(
  given: string | undefined,
  dataDir: string,
  environments: string,
): { name: string } & ClientOptions {
  // A file of secrets often ends in a line break.
  const apiKey = setting("apiKey")?.trim() || undefined;
  const address = readLine(join(dataDir, "address"));
  const token = readLine(join(dataDir, "admin-token"));
  const own = token === undefined ? undefined : { dataDir, tokenSha256: sha256Of(token) };
  const host = givenHost();
  if (given === undefined && host !== undefined) {
    const known = address === undefined ? undefined : ownAddress(host, address);
    if (known === undefined || apiKey !== undefined)
      return { name: host, baseUrl: known ?? host, key: apiKey, own: undefined };
    return { name: host, baseUrl: known, key: token, own };
  }
  const name = given ?? readEnvironments(environments).current;
  if (name === LOCAL) return { name, baseUrl: address ?? SETTINGS.host.default, key: apiKey ?? token, own };
  const environment = findEnvironment(environments, name);
  return { name, baseUrl: environment.host, key: apiKey ?? environment.key, own: undefined };
}

/**
 * Where to reach the server of the data directory, if `host` is another name for it on this machine; undefined if it is
 * not. Without TLS nothing proves who answers, so that the server's own address is taken.
 */
function ownAddress(host: string, own: string): string | undefined {
  if (host.replace(/\/+$/, "") === own) return own;
  if (!URL.canParse(host) || !URL.canParse(own)) return undefined;
  const [given, known] = [new URL(host), new URL(own)];
  const isSamePort = given.protocol === known.protocol && given.port === known.port;
  const isSame =
    isSamePort && given.pathname === "/" && LOOPBACK_NAMES.get(known.hostname)?.includes(given.hostname);
  if (!isSame) return undefined;
  return known.protocol === "https:" ? host : own;
}

function readLine(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}

function addServerVerb(program: Command, onExit: (code: number) => void): void {
  const command = program.command("up").description("start the server; SIGTERM or Ctrl-C drains it");
  for (const name of [
    "listen",
    "dataDir",
    "python",
    "cpus",
    "memory",
    "gpus",
    "keepJobs",
    "keepFailedJobs",
    "secretNames",
    "publicUrl",
    "controlListen",
    "trustedProxies",
    "tlsCert",
    "tlsKey",
    "jwtIssuer",
    "jwtAudience",
    "jwtJwks",
    "jwtScopesClaim",
    "sigv4Credentials",
    "sigv4Region",
    "sigv4Service",
    "sigv4Repeats",
    "gateways",
    "maxBody",
  ] as const satisfies SettingName[]) {
    command.option(
      SETTINGS[name].option,
      `${SETTINGS[name].help} (${SETTINGS[name].env}; default ${SETTINGS[name].default || "none"})`,
    );
  }
  command.option(
    SETTINGS.allowLocalRoot.option,
    SETTINGS.allowLocalRoot.help,
    (root: string, all: string[]) => [...all, root],
    [],
  );
  command.option("--continue-jobs", "continue jobs that are paused because the data directory is a copy");
  command.option("--insecure-no-auth", "listen on other than loopback without keys");
  command.action(async (options: Record<string, string | boolean | string[] | undefined>) => {
    const { up } = await import("./up.ts");
    onExit(await up(upOptions(options)));
  });
}

function upOptions(options: Record<string, string | boolean | string[] | undefined>) {
  const text = (name: SettingName) => setting(name, options[name] as string | undefined);
  const maxBodyBytes = Number(text("maxBody"));
  if (!Number.isInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw new CliError(`--max-body must be a number of bytes (got "${text("maxBody")}")`, EXIT.usage);
  const fromEnvironment = setting("allowLocalRoot").split(":").filter(Boolean);
  return {
    listen: addressOf("--listen", text("listen")),
    controlListen:
      text("controlListen") === "" ? undefined : addressOf("--control-listen", text("controlListen")),
    trustedProxies: text("trustedProxies").split(",").filter(Boolean),
    tls: tlsOf(text("tlsCert"), text("tlsKey")),
    jwt: jwtOf(text),
    sigv4: signaturesOf(text),
    gateways: gatewaysOf(text("gateways")),
    dataDir: resolve(text("dataDir")),
    python: text("python"),
    publicUrl: publicUrlOf(text("publicUrl")),
    maxBodyBytes,
    localRoots: [...fromEnvironment, ...(options.allowLocalRoot as string[])].map((root) => resolve(root)),
    insecureNoAuth: options.insecureNoAuth === true,
    continueJobs: options.continueJobs === true,
    gpus: text("gpus"),
    secretNames: text("secretNames").split(",").filter(Boolean),
    keepMs: daysOf("--keep-jobs", text("keepJobs")),
    keepFailedMs: daysOf("--keep-failed-jobs", text("keepFailedJobs")),
    keepEnvironmentsMs: daysOf("--keep-environments", text("keepEnvironments")),
    compute: computeOf(text("cpus"), text("memory")),
    killAt: setting("killAt"),
  };
}

/** As it goes into headers: ASCII, whatever script it was written in. */
function publicUrlOf(text: string): string | undefined {
  if (text === "") return undefined;
  if (!/^https?:\/\/[^?#@]+$/.test(text) || !URL.canParse(text))
    throw new CliError(
      `--public-url must be a URL such as https://example.com/models (got "${text}")`,
      EXIT.usage,
    );
  return new URL(text).href.replace(/\/+$/, "");
}

function addressOf(option: string, text: string): { host: string; port: number } {
  const [, host, port] = /^(.*):(\d+)$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new CliError(`${option} must be HOST:PORT (got "${text}")`, EXIT.usage);
  return {
    host: host === "localhost" || host === "" ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""),
    port: Number(port),
  };
}

function tlsOf(cert: string, key: string): { cert: string; key: string } | undefined {
  if (cert === "" && key === "") return undefined;
  for (const [option, file] of [
    ["--tls-cert", cert],
    ["--tls-key", key],
  ] as const) {
    if (file === "" || !existsSync(file))
      throw new CliError(`${option} must be a file (got "${file}"); both are needed`, EXIT.usage);
  }
  return { cert: resolve(cert), key: resolve(key) };
}

function jwtOf(text: (name: SettingName) => string) {
  const issuer = text("jwtIssuer");
  if (issuer === "") return undefined;
  const audience = text("jwtAudience");
  if (audience === "" || !URL.canParse(issuer))
    throw new CliError(
      "--jwt-issuer must be a URL, and --jwt-audience must say whom tokens are for",
      EXIT.usage,
    );
  const jwks = text("jwtJwks") || `${issuer.replace(/\/+$/, "")}/.well-known/jwks.json`;
  return { issuer, audience, jwks, scopesClaim: text("jwtScopesClaim") };
}

function signaturesOf(text: (name: SettingName) => string) {
  const repeats = text("sigv4Repeats");
  if (repeats !== "reads" && repeats !== "predictions")
    throw new CliError(`--sigv4-repeats must be reads or predictions (got "${repeats}")`, EXIT.usage);
  const file = text("sigv4Credentials");
  if (file === "") return undefined;
  try {
    parseCredentials(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CliError(`--sigv4-credentials ${file}: ${(error as Error).message}`, EXIT.usage);
  }
  const listOf = (name: SettingName) => text(name).split(",").filter(Boolean);
  return {
    ...{ credentials: resolve(file), regions: listOf("sigv4Region"), services: listOf("sigv4Service") },
    repeats: repeats as "reads" | "predictions",
  };
}

function gatewaysOf(text: string): number {
  const gateways = Number(text);
  if (!Number.isInteger(gateways) || gateways < 1 || gateways > 64)
    throw new CliError(`--gateways must be a number from 1 to 64 (got "${text}")`, EXIT.usage);
  return gateways;
}

function daysOf(option: string, text: string): number {
  const days = Number(text);
  if (text === "" || !(days >= 0))
    throw new CliError(`${option} must be a number of days (got "${text}")`, EXIT.usage);
  return days * 86_400_000;
}

/** What the machine has, or what the operator says: also more, if many workers of little work are to share it. */
function computeOf(cpus: string, memory: string) {
  const machine = {
    cpuMillis: availableParallelism() * 1000,
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  };
  const cpuMillis = cpus === "" ? machine.cpuMillis : parseCpuMillis(cpus);
  if (cpuMillis === undefined)
    throw new CliError(`--cpus must be a number of CPUs such as 4 or 500m (got "${cpus}")`, EXIT.usage);
  const memoryBytes = memory === "" ? machine.memoryBytes : parseBytes(memory);
  if (memoryBytes === undefined)
    throw new CliError(`--memory must be a size such as 8Gi or 500M (got "${memory}")`, EXIT.usage);
  return { cpuMillis, memoryBytes, machine };
}
