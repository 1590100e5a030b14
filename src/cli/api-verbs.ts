/** The verbs about APIs, and what they take. */
import type { Command } from "commander";
import type { CliContext } from "./context.ts";

export type RunVerb = (verb: (context: CliContext) => Promise<number>) => Promise<void>;

export function addApiVerbs(program: Command, run: RunVerb, version: string): void {
  const apis = () => import("./apis.ts");
  addDeployVerbs(program, run);
  program
    .command("get [api] [job]")
    .description("show what is deployed, an API, or a job")
    .action((api, job) =>
      run(async (context) => {
        const { get } = await apis();
        return (await import("./watch.ts")).watched(context, (watching) => get(watching, api, job));
      }),
    );
  program
    .command("describe <api>")
    .description("show everything about an API: replicas, versions, configuration")
    .action((api) => run(async (context) => (await import("./describe.ts")).describeApi(context, api)));
  program
    .command("predict <api> <file>")
    .description("send a JSON file (- is stdin) to a real-time API")
    .action((api, file) => run(async (context) => (await apis()).predict(context, api, file)));
  program
    .command("logs <api> [job]")
    .description("print the log of an API or a job")
    .option("-f, --follow", "go on until the job ends or you interrupt")
    .action((api, job, options) => run(async (context) => (await apis()).logs(context, api, job, options)));
  program
    .command("refresh <api>")
    .description("start new replicas of a real-time API; the old ones drain when those are ready")
    .action((api) => run(async (context) => (await apis()).refresh(context, api)));
  program
    .command("rollback <api> [id]")
    .description("deploy a former version again: the one before, or the one with this id")
    .action((api, id) => run(async (context) => (await apis()).rollback(context, api, id)));
  program
    .command("delete <api> [job]")
    .description("delete an API, or stop a job")
    .action((api, job) => run(async (context) => (await apis()).remove(context, api, job)));
  program
    .command("version")
    .description("print the versions of command line and server")
    .action(() => run(async (context) => (await apis()).showVersion(context, version)));
}

function addDeployVerbs(program: Command, run: RunVerb): void {
  const deploys = () => import("./deploy.ts");
  program
    .command("check [file]")
    .description("validate a configuration and its project without changing anything")
    .action((file = "quern.yaml") => run(async (context) => (await deploys()).check(context, file)));
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
    .action((file = "quern.yaml", names: string[] = [], options) =>
      run(async (context) => (await deploys()).deploy(context, file, names, options)),
    );
}
