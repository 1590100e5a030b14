/**
 * `quern dev`: deploys the project, deploys it again whenever a file changes, and prints the logs. If a version is
 * wrong or does not start, it reports that, and the last good version continues to serve. If no server runs, it starts
 * one, which ends with this command.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { inBackground } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";
import { printableLine } from "../../base/printable.ts";
import { END_WITH_ME } from "../../contracts/messages.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { waitUntilReady } from "./applications.ts";
import { type Deployed, sendProject, waitUntilLive } from "./deploy.ts";
import { projectState } from "./pack-project.ts";

/** How often it checks for changes; less often if checking is slow. */
const POLL_MS = 150;
const POLL_SHARE = 10;
const POLL_MAX_MS = 5_000;
const SERVER_MS = 30_000;
const LOG_RETRY_MS = 500;
const NAMED_MAX = 3;

export async function dev(context: CliContext, file: string, apis: string[]): Promise<never> {
  // Errors in the configuration are reported before a server is started.
  const state = await projectState(file);
  const server = (await isReached(context)) ? undefined : await startServer(context);
  const session = new DevSession(server === undefined ? context : context.reconnect(), file, apis);
  try {
    await session.watch(state, stopSignal(server).signal);
  } finally {
    session.stop();
    await stopServer(server);
  }
  // A deployment in progress may still wait for a server.
  process.exit(EXIT.success);
}

type Live = Pick<Deployed, "api" | "endpoint">;

class DevSession {
  private readonly context: CliContext;
  private readonly file: string;
  private readonly apis: string[];
  private readonly gone = new AbortController();
  private readonly following = new Set<string>();
  private replaced = new AbortController();
  /** One upload follows the other. */
  private sending: Promise<unknown> = Promise.resolve();
  /** Earlier lines belong to former sessions. */
  private readonly startedTime = new Date(wallMs()).toISOString();

  constructor(context: CliContext, file: string, apis: string[]) {
    this.context = context;
    this.file = file;
    this.apis = apis;
  }

  stop(): void {
    this.gone.abort();
  }

  /** Deploys, and again after each change, until `stopped`. `state`: of the project that was looked at last. */
  async watch(state: string, stopped: AbortSignal): Promise<void> {
    this.deploySoon();
    for (let last = state; !stopped.aborted; ) {
      const lookedMs = performance.now();
      const now = await this.look(last);
      const tookMs = performance.now() - lookedMs;
      if (now !== last) {
        this.context.err(`${changedFiles(last, now).join(", ")} changed\n`);
        this.deploySoon();
      }
      last = now;
      const pauseMs = Math.min(POLL_MAX_MS, Math.max(POLL_MS, tookMs * POLL_SHARE));
      await pause(pauseMs, undefined, { signal: stopped }).catch(() => {});
    }
  }

  private look(last: string): Promise<string> {
    return projectState(this.file).catch((error: Error) => {
      this.context.err(`${error.message}\n`);
      return last;
    });
  }

  /** An earlier version that does not serve yet is not waited for any more: it may never start. */
  private deploySoon(): void {
    this.replaced.abort();
    this.replaced = new AbortController();
    inBackground(this.deploy(this.replaced.signal));
  }

  /** Errors in the project are printed, not thrown: the next change may fix them. */
  private async deploy(replaced: AbortSignal): Promise<void> {
    const { context } = this;
    const startedMs = performance.now();
    try {
      const deployed = await Promise.race([this.deployed(replaced), whenAborted(replaced)]);
      if (deployed === undefined) return;
      for (const { api } of deployed) inBackground(this.follow(api));
      context.err(summary(deployed, performance.now() - startedMs));
    } catch (error) {
      // Not only the CLI's own: a file may be gone when it is read.
      const { message } = error as Error;
      context.err(`${message}\nthe last version that worked keeps running; waiting for a change\n`);
    }
  }

  /** Undefined if another version has replaced this one before it was sent. */
  private async deployed(replaced: AbortSignal): Promise<Live[] | undefined> {
    const sent = this.sending.then(() => (replaced.aborted ? undefined : this.send()));
    this.sending = sent.catch(() => {});
    const versions = await sent;
    return versions && (await Promise.all(versions.map((each) => this.settled(each)))).flat();
  }

  private async send(): Promise<Deployed[]> {
    // For an application, `force` cancels the stages of an earlier change, which are obsolete.
    return (await sendProject(this.context, this.file, this.apis, false, { force: true })).value;
  }

  /** Waits until the deployment serves. Returns its APIs: for an application, those of its models. */
  private async settled(deployed: Deployed): Promise<Live[]> {
    const { api, kind } = deployed;
    if (kind === "RealtimeAPI") await waitUntilLive({ ...this.context, err: () => {} }, api);
    if (kind !== "Application") return [deployed];
    const { resources } = await waitUntilReady(this.context, api);
    return resources.flatMap(({ api: served }) =>
      served === undefined ? [] : [{ api: served.name, endpoint: served.endpoint }],
    );
  }

  /** Prints what an API logs from now on, even across restarts of the server. */
  private async follow(api: string): Promise<void> {
    if (this.following.has(api)) return;
    this.following.add(api);
    let after = this.startedTime;
    while (!this.gone.signal.aborted) {
      after = await this.followOnce(api, after).catch(() => after);
      await pause(LOG_RETRY_MS, undefined, { signal: this.gone.signal }).catch(() => {});
    }
  }

  /** Returns the time of the last line when the response ends. */
  private async followOnce(api: string, after: string): Promise<string> {
    const { client, out } = this.context;
    const response = await client.request(`/-/apis/${encodeURIComponent(api)}/logs`, {
      query: { follow: "true" },
      headers: { accept: "application/x-ndjson" },
      signal: this.gone.signal,
    });
    let rest = "";
    let last = after;
    const decoder = new TextDecoder();
    for await (const chunk of response as AsyncIterable<Uint8Array>) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const text of lines) {
        const { time, line } = JSON.parse(text) as { time: string; line: string };
        if (time < after) continue;
        if (time > last) last = time;
        await out(`${api} | ${printableLine(line)}\n`);
      }
    }
    return last;
  }
}

/** The names of the changed files. They reveal a file that the project itself writes, such as a log. */
function changedFiles(before: string, now: string): string[] {
  const lines = (state: string) => new Set(state.split("\n"));
  const [old, fresh] = [lines(before), lines(now)];
  const differ = [...old, ...fresh].filter((line) => old.has(line) !== fresh.has(line));
  const names = new Set(differ.map((line) => line.split("\t")[0]!));
  return names.size <= NAMED_MAX
    ? [...names]
    : [...[...names].slice(0, NAMED_MAX), `${names.size - NAMED_MAX} more`];
}

function whenAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}

function summary(deployed: readonly Live[], tookMs: number): string {
  const lines = deployed.map(({ api, endpoint }) => `${api} is live at ${endpoint}`);
  return `${lines.join("\n")}\n(${(tookMs / 1000).toFixed(1)} s; deployed again when a file changes; Ctrl-C ends)\n`;
}

async function isReached({ client }: CliContext): Promise<boolean> {
  try {
    (await client.request("/-/livez")).resume();
    return true;
  } catch (error) {
    if (error instanceof CliError && error.exitCode === EXIT.unreachable) return false;
    throw error;
  }
}

/**
 * Starts `up` of the same program with this command's settings. It has its own process group, so that Ctrl-C reaches
 * only this process.
 */
async function startServer(context: CliContext): Promise<ChildProcess> {
  const server = spawn(process.execPath, [process.argv[1]!, "up"], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    detached: true,
  });
  server.send(END_WITH_ME, () => {});
  let said = "";
  server.stderr!.on("data", (text) => (said += String(text)));
  const deadline = performance.now() + SERVER_MS;
  while (!said.includes("quern is ready")) {
    if (server.exitCode !== null || performance.now() > deadline) {
      server.kill();
      throw new CliError(`no server is running, and none could be started: ${said.trim()}`, EXIT.unreachable);
    }
    await pause(20);
  }
  context.err("started a server, which ends with this command\n");
  return server;
}

async function stopServer(server: ChildProcess | undefined): Promise<void> {
  if (server === undefined || server.exitCode !== null) return;
  const gone = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  await gone;
}

/** Aborted by Ctrl-C, SIGTERM or the end of the terminal, or when the server that this command started ends. */
function stopSignal(server: ChildProcess | undefined): AbortController {
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, stop);
  server?.once("exit", stop);
  return stopped;
}
