/** The command line: the options of all verbs, the dispatch of commands, and the exit codes of failures. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError, Option } from "commander";
import { sha256Of } from "./access/permission.ts";
import { addApiVerbs } from "./cli/api-verbs.ts";
import { findEnvironment, LOCAL, readEnvironments } from "./cli/environments.ts";
import { addJobVerbs, addQueueVerbs } from "./cli/job-verbs.ts";
import { addOwnVerbs } from "./cli/own-verbs.ts";
import { Client, type ClientOptions } from "./cli/server/client.ts";
import { type CliContext, CliError, EXIT } from "./cli/server/context.ts";
import { isErrTerminal, isTerminal, Output, watchReaders } from "./cli/terminal/output.ts";
import { addressFile, adminTokenFile } from "./contracts/data-layout.ts";
import { packageRoot } from "./contracts/package-root.ts";
import { browserOpener, configDirectory, givenHost, isPlainOutput, setting } from "./settings/environment.ts";
import { version } from "./settings/installation.ts";
import {
  readServerOption,
  readServerOptions,
  SERVER_SETTING_NAMES,
  type ServerOptions,
  type SettingTexts,
} from "./settings/server-options.ts";
import { SERVER_SETTINGS } from "./settings/server-settings.ts";
import { SETTINGS } from "./settings/settings.ts";

/** Other names of a server that listens on a loopback address. */
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

/** Runs one command. Resolves to its exit code. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  watchReaders(
    () => process.exit(EXIT.success),
    ({ message }) => {
      new Output(false).fail(`error: the output could not be written: ${message}\n`);
      process.exit(EXIT.failed);
    },
  );
  let exitCode: number = EXIT.success;
  const program = buildProgram(
    async (verb) => {
      const context = contextOf(program.opts());
      exitCode = await context.client.understanding(() => verb(context));
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

/** Declares all verbs. Each is handed to its file in cli/. */
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
    new Option("-o, --output <form>", "output format").choices(["table", "json"]).default("table"),
  );
  program
    .option("-e, --env <name>", "server to use, by name (`quern env list`)")
    .option("-a, --app <name>", "declarative application for get, status, logs, predict, refresh or delete")
    .option("-w, --watch", "print again every two seconds")
    .option("-y, --yes", "do not ask for confirmation")
    .option("-q, --quiet", "print data only")
    .option("--no-color", "no progress bars, no colour");
  addServerVerb(program, onExit);
  addApiVerbs(program, run, version());
  addJobVerbs(program, run);
  addQueueVerbs(program, run);
  addOwnVerbs(program, run, version());
  return program;
}

function contextOf(options: GlobalOptions): CliContext {
  const dataDir = setting("dataDir");
  const database = () => readServerOption("database", setting("database"));
  const state = () => readServerOption("state", setting("state"));
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
    outBytes: (bytes) => output.outBytes(bytes),
    outAnew: (text) => output.outAnew(text),
    err: (text) => output.err(text),
    errLine: (text) => output.errLine(text),
    ask: (question) => output.ask(question),
    isInteractive: isErrTerminal() && options.color !== false && !isPlainOutput(),
    isTerminal: isTerminal(),
    browserOpener: browserOpener(),
    isYes: options.yes === true,
    isWatch: options.watch === true,
    files: { environments, dataDir, examples: join(packageRoot, "examples") },
    python: setting("python"),
    checkDatabase: async () =>
      (await import("./database-check.ts")).checkDatabase(dataDir, database(), state()),
    checkState: async () => (await import("./state-check.ts")).checkState(dataDir, database(), state()),
    openCluster: async (asked) => (await import("./cluster-check.ts")).openCluster(asked),
    savedBackups: () => import("./saved-backups.ts"),
    hasAnyKey: async (dataDir) => (await import("./offline-keys.ts")).hasAnyKey(dataDir, database()),
    createKeyOffline: async (...args) =>
      (await import("./offline-keys.ts")).createKeyOffline(...args, database(), state() !== undefined),
  };
}

/**
 * Chooses the server: `-e`, then QUERN_HOST, then the current environment, then the server of the data directory, then
 * the default address. The data directory's admin token is sent only to its own server, which must prove that it is the
 * right one. A server that the user names gets the key that the user gives, and proves nothing.
 */
function targetOf(
  given: string | undefined,
  dataDir: string,
  environments: string,
): { name: string } & ClientOptions {
  // A file with a secret often ends with a line break.
  const apiKey = setting("apiKey")?.trim() || undefined;
  const address = readLine(addressFile(dataDir));
  const token = readLine(adminTokenFile(dataDir));
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
 * The address of the data directory's server, if `host` is another name for it on this machine; otherwise undefined.
 * Without TLS nothing proves who responds, so the server's own address is used.
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
  for (const name of SERVER_SETTING_NAMES) {
    const { option, help, env, unit } = SERVER_SETTINGS[name];
    if (option === "") continue;
    if (name === "allowLocalRoot")
      command.option(option, help, (root: string, all: string[]) => [...all, root], []);
    else if (unit === "flag") command.option(option, help);
    else command.option(option, `${help} (${env}; default ${SERVER_SETTINGS[name].default || "none"})`);
  }
  command.action(async (given: Record<string, string | boolean | string[] | undefined>) => {
    const options = serverOptions(settingTexts(given));
    const { up } = await import("./up.ts");
    onExit(await up(options));
  });
}

function settingTexts(given: Record<string, string | boolean | string[] | undefined>): SettingTexts {
  const texts = SERVER_SETTING_NAMES.map((name) => {
    const option = given[name];
    return [name, setting(name, typeof option === "boolean" ? String(option) : (option as string))];
  });
  // `/data:ro:/out` is two directories, and `:ro` belongs to the first.
  const fromEnv = setting("allowLocalRoot").split(/:(?!ro(?::|$))/);
  const roots = [...fromEnv, ...(given.allowLocalRoot as string[])];
  return { ...Object.fromEntries(texts), allowLocalRoot: roots.join("\0") } as SettingTexts;
}

function serverOptions(texts: SettingTexts): ServerOptions {
  try {
    return readServerOptions(texts);
  } catch (error) {
    throw new CliError((error as Error).message, EXIT.usage);
  }
}
