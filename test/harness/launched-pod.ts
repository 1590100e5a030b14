/** A pod's launcher as a plain process, and the server that gives it its project. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create } from "tar";
import type { LauncherFailure } from "../../src/kubernetes/pods/launcher.ts";
import type { WorkerAddress } from "../../src/protocol/connect-socket.ts";
import { makeCertificate } from "./certificates.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./faulty-proxy.ts";
import { root } from "./server.ts";
import { WORKER_TOKEN } from "./started-worker.ts";

export interface PodFacts {
  state: string;
  reason: string | null;
  failure: LauncherFailure | null;
  starts: number;
  pid: number | null;
  last_exit: {
    code?: number;
    signal?: string;
    with_container?: true;
    out_of_memory?: true;
    peak_memory_bytes?: number;
    last_lines: string[];
    note: { busy: boolean; batch_index: number; delivery: number } | null;
  } | null;
  note: { busy: boolean } | null;
}

/** As src/apis/projects/project-files.ts computes it. */
export function projectId(files: Record<string, string>): string {
  const hash = createHash("sha256");
  for (const path of Object.keys(files).sort())
    hash.update(`${path}\0${createHash("sha256").update(files[path]!).digest("hex")}\n`);
  return hash.digest("hex").slice(0, 24);
}

/** Serves archives by project id, to who has the token. */
export class ProjectServer {
  readonly archives = new Map<string, Buffer>();
  /** The answers to the next requests, instead of the archive. */
  readonly faults: ("503" | "cut" | "redirect")[] = [];
  requests = 0;
  private readonly directory = mkdtempSync(join(tmpdir(), "quern-projects-"));
  private server!: Server;

  static async start(): Promise<ProjectServer> {
    const projects = new ProjectServer();
    projects.server = createServer((request, response) => {
      projects.requests++;
      const fault = projects.faults.shift();
      const archive = projects.archives.get(request.url!.split("/").at(-1)!);
      if (request.headers.authorization !== `Bearer ${WORKER_TOKEN}`) response.writeHead(401).end();
      else if (fault === "503") response.writeHead(503).end();
      else if (fault === "redirect") response.writeHead(302, { location: projects.url("0") }).end();
      else if (archive === undefined) response.writeHead(404).end();
      else if (fault === "cut") {
        response.writeHead(200, { "content-length": archive.length });
        response.write(archive.subarray(0, archive.length / 2), () => response.destroy());
      } else response.writeHead(200).end(archive);
    });
    await new Promise<void>((resolve) => projects.server.listen(0, "127.0.0.1", resolve));
    return projects;
  }

  url(id: string): string {
    return `http://127.0.0.1:${(this.server.address() as { port: number }).port}/-/projects/${id}`;
  }

  async add(files: Record<string, string>): Promise<string> {
    const id = projectId(files);
    const from = join(this.directory, id);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(from, "project", path)), { recursive: true });
      writeFileSync(join(from, "project", path), text);
    }
    await create({ cwd: from, file: join(from, "a.tgz"), gzip: true, portable: true }, ["project"]);
    this.archives.set(id, readFileSync(join(from, "a.tgz")));
    return id;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export interface PodCommand {
  command: string;
  args: string[];
  cwd: string;
}

export class LaunchedPod {
  readonly directory = mkdtempSync(join(tmpdir(), "quern-pod-"));
  readonly cache: string;
  output = "";
  process!: ChildProcess;
  private command: PodCommand = {
    command: "python3",
    args: ["-m", "quern_launcher"],
    cwd: join(root, "python"),
  };
  private readonly ports: { worker: number; health: number };
  private readonly url: string;
  private readonly variables: Record<string, string>;

  /** Several pods of a node have the same `cache`. */
  static async start(
    url: string,
    variables: Record<string, string> = {},
    cache?: string,
    start?: (directory: string) => PodCommand,
  ): Promise<LaunchedPod> {
    const pod = new LaunchedPod(url, variables, cache, {
      worker: await freePort(),
      health: await freePort(),
    });
    const secrets = join(pod.directory, "secrets");
    mkdirSync(secrets);
    writeFileSync(join(secrets, "token"), `${WORKER_TOKEN}\n`);
    const files = makeCertificate(secrets);
    renameSync(files.cert, join(secrets, "tls.crt"));
    renameSync(files.key, join(secrets, "tls.key"));
    if (start !== undefined) pod.command = start(pod.directory);
    pod.run();
    return pod;
  }

  private constructor(
    url: string,
    variables: Record<string, string>,
    cache: string | undefined,
    ports: { worker: number; health: number },
  ) {
    this.url = url;
    this.variables = variables;
    this.cache = cache ?? join(this.directory, "cache");
    this.ports = ports;
  }

  get address(): WorkerAddress {
    const ca = readFileSync(join(this.directory, "secrets", "tls.crt"), "utf8");
    return { host: "127.0.0.1", port: this.ports.worker, tls: { ca }, serverName: "quern" };
  }

  get healthPort(): number {
    return this.ports.health;
  }

  /** Also again, in the same pod. */
  run(): void {
    const { command, args, cwd } = this.command;
    this.process = spawn(command, args, {
      cwd,
      env: {
        ...process.env,
        QUERN_PROJECT_URL: this.url,
        QUERN_SECRETS: join(this.directory, "secrets"),
        QUERN_RUN: join(this.directory, "run"),
        QUERN_CACHE: this.cache,
        QUERN_LISTEN: `127.0.0.1:${this.ports.worker}`,
        QUERN_HEALTH: `127.0.0.1:${this.ports.health}`,
        QUERN_GRACE: "20",
        ...this.variables,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.process.stdout!, this.process.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
  }

  get(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.ports.health}${path}`, {
      method,
      headers,
      signal: AbortSignal.timeout(5_000),
    });
  }

  /** The status and the text of /readyz; status 0 before it listens. */
  async readiness(): Promise<{ status: number; text: string }> {
    const response = await this.get("/readyz").catch(() => undefined);
    return { status: response?.status ?? 0, text: (await response?.text()) ?? "" };
  }

  async facts(): Promise<PodFacts> {
    const response = await this.get("/worker", { authorization: `Bearer ${WORKER_TOKEN}` });
    return (await response.json()) as PodFacts;
  }

  async untilReadiness(wanted: RegExp): Promise<void> {
    let seen = "";
    const check = async () => {
      const { status, text } = await this.readiness();
      seen = `${status} ${text}`;
      return wanted.test(seen);
    };
    await eventually(
      `readiness is ${wanted.source}`,
      check,
      30_000,
      () => `seen: ${seen}; output: ${this.output.slice(-2000)}`,
    );
  }

  /** With everything that it has started. */
  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const pid = await this.facts().then(
        (facts) => facts.pid,
        () => null,
      );
      this.process.kill("SIGKILL");
      if (pid !== null) killGroup(pid);
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}
