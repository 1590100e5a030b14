/** A real nginx in front of a server. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

export const hasNginx = spawnSync("which", ["nginx"]).status === 0;

export class Nginx {
  private readonly directory: string;
  private child: ChildProcess | undefined;

  /** `directory` is for its own files. */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** `http`: its blocks `server` and `upstream`. Resolves once `url` responds through it with success. */
  async start(http: string, url: string): Promise<void> {
    const { directory } = this;
    mkdirSync(directory, { recursive: true });
    const file = join(directory, "nginx.conf");
    const log = join(directory, "nginx.log");
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${join(directory, name)};`,
    );
    writeFileSync(
      file,
      `daemon off; worker_processes 1; pid ${directory}/nginx.pid; error_log ${log}; events {}
http { access_log off; ${temporary.join(" ")}
${http}
}
`,
    );
    this.child = spawn("nginx", ["-c", file, "-p", directory, "-e", log], { stdio: "ignore" });
    await eventually("nginx responds", async () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (child === undefined) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGQUIT");
    await gone;
  }
}
