/** The verbs about APIs, and what they take. */
import type { Command } from "commander";
import { type CliContext, CliError, EXIT } from "./context.ts";

export type RunVerb = (verb: (context: CliContext) => Promise<number>) => Promise<void>;

export function addApiVerbs(program: Command, run: RunVerb, version: string): void {
  const apis = () => import("./apis.ts");
  const applications = () => import("./applications.ts");
  const given = (...names: (string | undefined)[]) => names.filter((name) => name !== undefined);
  addDeployVerbs(program, run);
  program
    .command("get [api] [job]")
    .description(
      "show what is deployed, an API, or a job; with -a, [type] [name] of an application's resources",
    )
    .action((api, job) =>
      run(async (context) => {
        const { get } = await apis();
        const { getResources } = await applications();
        return (await import("./watch.ts")).watched(context, (watching) =>
          context.app === undefined
            ? get(watching, api, job)
            : getResources(watching, context.app, given(api, job)),
        );
      }),
    );
  program
    .command("status [type] [name]")
    .description("with -a: how many of an application's resources are ready, by kind")
    .action((type, name) =>
      run(async (context) => {
        const { showStatus } = await applications();
        const app = context.app;
        if (app === undefined) throw new CliError("name the application with -a", EXIT.usage);
        return (await import("./watch.ts")).watched(context, (watching) =>
          showStatus(watching, app, given(type, name)),
        );
      }),
    );
  program
    .command("describe <api>")
    .description("show everything about an API: replicas, versions, configuration")
    .action((api) => run(async (context) => (await import("./describe.ts")).describeApi(context, api)));
  program
    .command("predict <api> <file>")
    .description("send a JSON file (- is stdin) to a real-time API")
    .action((api, file) =>
      run(async (context) =>
        context.app === undefined
          ? (await apis()).predict(context, api, file)
          : (await applications()).predictSamples(context, context.app, api, file),
      ),
    );
  program
    .command("logs <api> [job]")
    .description("print the log of an API or a job; with -a, of [type] name of an application's resources")
    .option("-f, --follow", "go on until the job ends or you interrupt")
    .action((api, job, options) =>
      run(async (context) =>
        context.app === undefined
          ? (await import("./logs.ts")).logs(context, api, job, options)
          : (await applications()).resourceLogs(context, context.app, given(api, job), options),
      ),
    );
  addChangingVerbs(program, run);
  program
    .command("version")
    .description("print the versions of command line and server")
    .action(() => run(async (context) => (await apis()).showVersion(context, version)));
}

const CANCEL_HELP = "cancel a deployment in progress: end what it is still starting or computing";

/** What changes something that is deployed. */
function addChangingVerbs(program: Command, run: RunVerb): void {
  const apis = () => import("./apis.ts");
  const applications = () => import("./applications.ts");
  program
    .command("refresh [api]")
    .description(
      "start new replicas of a real-time API; the old ones drain when those are ready. With -a, read an application's data again",
    )
    .option("-f, --force", CANCEL_HELP)
    .action((api, options) =>
      run(async (context) => {
        if (context.app !== undefined)
          return (await applications()).refreshApplication(context, context.app, options);
        if (api === undefined) throw new CliError("name the API, or an application with -a", EXIT.usage);
        return (await apis()).refresh(context, api, options);
      }),
    );
  program
    .command("rollback <api> [id]")
    .description("deploy a former version again: the one before, or the one with this id")
    .action((api, id) => run(async (context) => (await apis()).rollback(context, api, id)));
  program
    .command("delete [api] [job]")
    .description("delete an API, or stop a job; with -a, delete an application")
    .option("-f, --force", "do not ask, as -y")
    .action((api, job, options) =>
      run(async (given) => {
        const context = { ...given, isYes: given.isYes || options.force === true };
        if (context.app !== undefined && api === undefined)
          return (await applications()).deleteApplication(context, context.app);
        if (api === undefined) throw new CliError("name the API, or an application with -a", EXIT.usage);
        return (await apis()).remove(context, api, job);
      }),
    );
}

const ENVIRONMENT = "--environment <name>";
const ENVIRONMENT_HELP = "of a declarative application: which of its environments (default dev)";

function addDeployVerbs(program: Command, run: RunVerb): void {
  const deploys = () => import("./deploy.ts");
  program
    .command("check [file]")
    .description("validate a configuration and its project without changing anything")
    .option(ENVIRONMENT, ENVIRONMENT_HELP)
    .action((file = "quern.yaml", options) =>
      run(async (context) => (await deploys()).check(context, file, options)),
    );
  program
    .command("dev [file] [apis...]")
    .description("deploy, and again whenever a file changes; print the logs; start a server where none runs")
    .action((file = "quern.yaml", names: string[] = []) =>
      run(async (context) => (await import("./dev.ts")).dev(context, file, names)),
    );
  program
    .command("deploy [file] [apis...]")
    .description("deploy the APIs of a configuration (default quern.yaml), or some of them")
    .option("--wait", "until the replicas are live or have failed")
    .option(ENVIRONMENT, ENVIRONMENT_HELP)
    .option("-f, --force", CANCEL_HELP)
    .action((file = "quern.yaml", names: string[] = [], options) =>
      run(async (context) => (await deploys()).deploy(context, file, names, options)),
    );
}
