/** The verbs of the command line (decision 6), each handed to its file in cli/. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command, CommanderError, Option } from "commander";
import { Client } from "./cli/client.ts";
import { type CliContext, CliError, EXIT } from "./cli/context.ts";
import { givenHost, isPlainOutput, SETTINGS, type SettingName, setting, version } from "./settings.ts";

type Verb = (context: CliContext) => Promise<number>;

/** Runs one command; resolves to its exit code. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.success;
  const program = new Command("quern")
    .description("Python prediction classes as real-time APIs and batch jobs")
    .exitOverride();
  program.addOption(
    new Option("-o, --output <form>", "how to print data").choices(["table", "json"]).default("table"),
  );
  program.option("-q, --quiet", "print data only").option("--no-color", "no bars, no colour");
  const runVerb = async (verb: Verb) => {
    exitCode = await verb(contextOf(program.opts()));
  };
  addServerVerb(program, (code) => (exitCode = code));
  addApiVerbs(program, runVerb);
  addJobVerbs(program, runVerb);
  try {
    await program.parseAsync(argv as string[]);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.success : EXIT.usage;
    process.stderr.write(`error: ${(error as Error).message}\n`);
    return error instanceof CliError ? error.exitCode : EXIT.failed;
  }
}

function contextOf(options: { output?: "table" | "json"; quiet?: boolean; color?: boolean }): CliContext {
  const dataDir = setting("dataDir");
  return {
    client: new Client(hostOf(dataDir), setting("apiKey") || readLine(join(dataDir, "admin-token"))),
    output: options.output ?? "table",
    out: (text) => void process.stdout.write(text),
    err: (text) => void (options.quiet === true || process.stderr.write(text)),
    isInteractive: process.stderr.isTTY === true && options.color !== false && !isPlainOutput(),
  };
}

/** QUERN_HOST, else the server that uses the data directory, else the default address. */
function hostOf(dataDir: string): string {
  return givenHost() ?? readLine(join(dataDir, "address")) ?? SETTINGS.host.default;
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
    "publicUrl",
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
  command.option("--insecure-no-auth", "listen on other than loopback without keys");
  command.action(async (options: Record<string, string | boolean | string[] | undefined>) => {
    const { up } = await import("./up.ts");
    onExit(await up(upOptions(options)));
  });
}

function upOptions(options: Record<string, string | boolean | string[] | undefined>) {
  const text = (name: SettingName) => setting(name, options[name] as string | undefined);
  const [, host, port] = /^(.*):(\d+)$/.exec(text("listen")) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new CliError(`--listen must be HOST:PORT (got "${text("listen")}")`, EXIT.usage);
  const maxBodyBytes = Number(text("maxBody"));
  if (!Number.isInteger(maxBodyBytes) || maxBodyBytes < 1)
    throw new CliError(`--max-body must be a number of bytes (got "${text("maxBody")}")`, EXIT.usage);
  const publicUrl = text("publicUrl");
  if (publicUrl !== "" && !URL.canParse(publicUrl))
    throw new CliError(`--public-url must be a URL (got "${publicUrl}")`, EXIT.usage);
  const fromEnvironment = setting("allowLocalRoot").split(":").filter(Boolean);
  return {
    host: host === "localhost" || host === "" ? "127.0.0.1" : host.replace(/^\[|\]$/g, ""),
    port: Number(port),
    dataDir: resolve(text("dataDir")),
    python: text("python"),
    publicUrl: publicUrl === "" ? undefined : publicUrl.replace(/\/+$/, ""),
    maxBodyBytes,
    localRoots: [...fromEnvironment, ...(options.allowLocalRoot as string[])].map((root) => resolve(root)),
    insecureNoAuth: options.insecureNoAuth === true,
    killAt: setting("killAt"),
  };
}

function addApiVerbs(program: Command, runVerb: (verb: Verb) => Promise<void>): void {
  const apis = () => import("./cli/apis.ts");
  const deploys = () => import("./cli/deploy.ts");
  program
    .command("check [file]")
    .description("validate a configuration and its project without changing anything")
    .action((file = "quern.yaml") => runVerb(async (context) => (await deploys()).check(context, file)));
  program
    .command("deploy [file] [apis...]")
    .description("deploy the APIs of a configuration (default quern.yaml), or some of them")
    .option("--wait", "until the replicas are live or have failed")
    .action((file = "quern.yaml", names: string[] = [], options) =>
      runVerb(async (context) => (await deploys()).deploy(context, file, names, options)),
    );
  program
    .command("get [api] [job]")
    .description("show what is deployed, an API, or a job")
    .action((api, job) => runVerb(async (context) => (await apis()).get(context, api, job)));
  program
    .command("predict <api> <file>")
    .description("send a JSON file (- is stdin) to a real-time API")
    .action((api, file) => runVerb(async (context) => (await apis()).predict(context, api, file)));
  program
    .command("logs <api> [job]")
    .description("print the log of an API or a job")
    .option("-f, --follow", "go on until the job ends or you interrupt")
    .action((api, job, options) =>
      runVerb(async (context) => (await apis()).logs(context, api, job, options)),
    );
  program
    .command("delete <api> [job]")
    .description("delete an API, or stop a job")
    .option("-y, --yes", "do not ask (nothing is asked yet)")
    .action((api, job) => runVerb(async (context) => (await apis()).remove(context, api, job)));
  program
    .command("version")
    .description("print the versions of command line and server")
    .action(() => runVerb(async (context) => (await apis()).showVersion(context, version())));
}

function addJobVerbs(program: Command, runVerb: (verb: Verb) => Promise<void>): void {
  const jobs = () => import("./cli/jobs.ts");
  const job = program.command("job").description("submit, watch and stop jobs").exitOverride();
  job
    .command("submit <api> <file>")
    .description("submit a job from a JSON file (- is stdin); prints its id")
    .option("--wait", "until it has ended")
    .action((api, file, options) =>
      runVerb(async (context) => (await jobs()).submitJob(context, api, file, options)),
    );
  job
    .command("get <api> <job>")
    .description("show a job")
    .action((api, id) => runVerb(async (context) => (await jobs()).getJob(context, api, id)));
  job
    .command("list <api>")
    .description("show the newest jobs of an API")
    .option("--limit <count>", "at most this many", "10")
    .action((api, options) => runVerb(async (context) => (await jobs()).listJobs(context, api, options)));
  job
    .command("wait <api> <job>")
    .description("wait for the end of a job; the exit code tells how it ended")
    .option("--timeout <seconds>", "give up after this long (exit code 124); the job goes on")
    .action((api, id, options) =>
      runVerb(async (context) => (await jobs()).waitForJob(context, api, id, options)),
    );
  job
    .command("stop <api> <job>")
    .description("stop a job")
    .action((api, id) =>
      runVerb(async (context) => (await import("./cli/apis.ts")).remove(context, api, id)),
    );
  job
    .command("logs <api> <job>")
    .description("print the log of a job")
    .option("-f, --follow", "go on until the job ends")
    .action((api, id, options) =>
      runVerb(async (context) => (await import("./cli/apis.ts")).logs(context, api, id, options)),
    );
}
