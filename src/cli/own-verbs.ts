/** The verbs about the command line, keys and the machine. */
import type { Command } from "commander";
import type { RunVerb } from "./api-verbs.ts";

export function addOwnVerbs(program: Command, run: RunVerb): void {
  addKeyVerbs(program, run);
  addEnvironmentVerbs(program, run);
  program
    .command("init [directory]")
    .description("write a project to begin with")
    .option("--template <name>", "iris, scikit-learn or files", "iris")
    .action((directory = ".", options) =>
      run(async (context) => (await import("./project/init.ts")).initProject(context, directory, options)),
    );
  program
    .command("export")
    .description("write what is deployed as files")
    .exitOverride()
    .command("api <api> <idOrDirectory> [directory]")
    .usage("[options] <api> [id] <directory>")
    .description(
      "write the configuration and files of an API, or of its version with this id, to a new directory",
    )
    .action((api, idOrDirectory, directory) =>
      run(async (context) =>
        (await import("./project/export.ts")).exportApi(context, api, idOrDirectory, directory),
      ),
    );
  program
    .command("audit")
    .description("print who changed what, and what was refused")
    .option("-f, --follow", "continue until you interrupt")
    .option("--key <id>", "by this key or subject of a token only")
    .option("--since <duration>", "of so long only, such as 1h")
    .action((options) => run(async (context) => (await import("./audit.ts")).showAudit(context, options)));
  program
    .command("doctor")
    .description("look at what Quern stands on: Node, Python, disk, limits, the server")
    .action(() => run(async (context) => (await import("./doctor.ts")).doctor(context)));
  program
    .command("completion <shell>")
    .description("print the completion for bash, zsh or fish")
    .action((shell) =>
      run(async ({ out }) => {
        await out((await import("./completion.ts")).completionScript(program, shell));
        return 0;
      }),
    );
}

function addKeyVerbs(program: Command, run: RunVerb): void {
  const keys = () => import("./keys.ts");
  const verb = program
    .command("keys")
    .description("keys that open APIs and the control plane")
    .exitOverride();
  verb
    .command("create")
    .description("make a key and print it, this once")
    .requiredOption("--scope <scope>", "predict, submit or admin")
    .option("--api <name>", "open this API only")
    .option("--data-dir <dir>", "make it there, without a running server")
    .option("--rate <rate>", "the most requests, such as 100/s, 5000/m or 20000/h")
    .option("--expires-in <duration>", "how long it opens anything, such as 720h")
    .action((options) => run(async (context) => (await keys()).createKey(context, options)));
  verb
    .command("list")
    .description("show the keys that there are, without the keys themselves")
    .action(() => run(async (context) => (await keys()).listKeys(context)));
  verb
    .command("rotate <id>")
    .description("make and print a key that opens the same; the former one ends after the grace")
    .option("--grace <duration>", "how long the former one goes on (default 24h)")
    .action((id, options) => run(async (context) => (await keys()).rotateKey(context, id, options)));
  verb
    .command("revoke <id>")
    .description("revoke a key; it opens nothing from then on")
    .action((id) => run(async (context) => (await keys()).revokeKey(context, id)));
}

function addEnvironmentVerbs(program: Command, run: RunVerb): void {
  const environments = () => import("./environments.ts");
  const verb = program.command("env").description("servers by name, for -e").exitOverride();
  verb
    .command("add <name>")
    .description("add a server, or replace one")
    .requiredOption("--host <url>", "its address")
    .option("--key <key>", "the key to send; - reads it from standard input")
    .action((name, options) =>
      run(async (context) => (await environments()).addEnvironment(context, name, options)),
    );
  verb
    .command("list")
    .description("show the servers that there are")
    .action(() => run(async (context) => (await environments()).listEnvironments(context)));
  verb
    .command("use <name>")
    .alias("default")
    .description("talk to this one from now on, where -e says nothing")
    .action((name) => run(async (context) => (await environments()).useEnvironment(context, name)));
  verb
    .command("remove <name>")
    .alias("delete")
    .description("forget a server")
    .action((name) => run(async (context) => (await environments()).removeEnvironment(context, name)));
}
