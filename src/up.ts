/**
 * The parent of `quern up`: owns the listening socket, starts gateway and controller and starts them again when they
 * die. It holds no state. The socket is shared through the kernel, so that connections wait in its queue, and are not
 * refused, while a gateway is replaced (docs/decisions/0002-listening-socket.md).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isLoopbackAddress } from "./access/host-check.ts";
import { delay } from "./base/clock.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { packageRoot, pythonRuntimeDir, runtimeDirectory, version } from "./settings.ts";

const RESTART_FIRST_MS = 20;
const RESTART_MAX_MS = 2_000;
const STOP_MS = 30_000;
const BIND_MS = 2_000;
/** A child that cannot start, and says why itself, ends with this code: starting it again would change nothing. */
export const EXIT_CANNOT_START = 78;

export interface UpOptions {
  host: string;
  port: number;
  dataDir: string;
  python: string;
  /** What workers may take together. */
  compute: { cpuMillis: number; memoryBytes: number };
  gpus: string;
  keepMs: number;
  keepFailedMs: number;
  publicUrl: string | undefined;
  maxBodyBytes: number;
  localRoots: string[];
  insecureNoAuth: boolean;
  killAt: string;
}

export type ChildRole = "gateway" | "controller";

/**
 * The controller makes much short-lived text while it lists and enqueues: with V8's own 16 MiB of young space its memory
 * stands at twice what it needs.
 */
const NODE_OPTIONS: Record<ChildRole, readonly string[]> = {
  gateway: ["--disable-warning=ExperimentalWarning"],
  // The second one is a client's, about Node versions; ours are said in the README.
  controller: [
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=NodeVersionSupportWarning",
    "--max-semi-space-size=8",
  ],
};

/** Runs until SIGTERM or SIGINT; resolves to the exit code. */
export async function up(options: UpOptions): Promise<number> {
  if (!isLoopbackAddress(options.host) && !options.insecureNoAuth && !(await hasAnyKey(options.dataDir))) {
    process.stderr.write(
      `quern: refusing to listen on ${options.host}: anyone who reaches it could use your APIs.\n` +
        `  Create a key first: quern keys create --scope predict --data-dir ${options.dataDir}\n` +
        "  Or accept the risk with --insecure-no-auth.\n",
    );
    return 1;
  }
  const handle = await bindSocket(options.host, options.port);
  const parent = new Parent(options, handle);
  return parent.run();
}

/**
 * A bound socket that does not accept here: only the gateways, which inherit it, do. Tried for a moment where the
 * address is in use: the gateway of a parent that was killed is about to let go of it.
 */
async function bindSocket(host: string, port: number): Promise<SocketHandle> {
  // The function behind node:cluster's shared handles; there is no public one that binds without accepting.
  const { _createServerHandle } = net as unknown as {
    _createServerHandle: (host: string, port: number, family: number) => SocketHandle | number;
  };
  // Nothing else keeps this process alive yet, so the timer has to.
  const pause = () => new Promise((resolve) => setTimeout(resolve, RESTART_FIRST_MS));
  for (const deadline = Date.now() + BIND_MS; ; await pause()) {
    const handle = _createServerHandle(host, port, net.isIPv6(host) ? 6 : 4);
    // An address in use is told by getsockname: libuv keeps the error of the bind for later.
    if (typeof handle !== "number") {
      if (handle.getsockname({}) === 0) return handle;
      handle.close();
    }
    if (Date.now() > deadline) {
      throw new Error(
        `cannot listen on ${host}:${port}: it is in use or not allowed; choose another with --listen HOST:PORT (port 0 is any free one)`,
      );
    }
  }
}

/** A test kills the first controller only; the next one has to cope. */
function withoutKillPoint(childOptions: string): string {
  return JSON.stringify({ ...(JSON.parse(childOptions) as object), killAt: "" });
}

interface SocketHandle {
  /** 0, or the error's number. */
  getsockname(out: { address?: string; port?: number }): number;
  close(): void;
}

class Parent {
  private readonly options: UpOptions;
  private readonly handle: SocketHandle;
  private readonly baseUrl: string;
  private readonly children = new Map<ChildRole, ChildProcess>();
  private readonly ready = new Set<ChildRole>();
  private isStopping = false;
  private exitCode = 0;

  constructor(options: UpOptions, handle: SocketHandle) {
    this.options = options;
    this.handle = handle;
    const name: { port?: number } = {};
    handle.getsockname(name);
    const host = options.host.includes(":") ? `[${options.host}]` : options.host;
    this.baseUrl = `http://${host}:${name.port}`;
  }

  async run(): Promise<number> {
    const childOptions = this.childOptions();
    const stop = () => void this.stop();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    await Promise.all([this.supervise("controller", childOptions), this.supervise("gateway", childOptions)]);
    return this.exitCode;
  }

  private childOptions(): string {
    const {
      host,
      publicUrl,
      dataDir,
      python,
      compute,
      gpus,
      keepMs,
      keepFailedMs,
      maxBodyBytes,
      localRoots,
      killAt,
    } = this.options;
    const runtimeDir = runtimeDirectory(dataDir);
    return JSON.stringify({
      dataDir,
      runtimeDir,
      controllerSocket: join(runtimeDir, "controller.sock"),
      internalSocket: join(runtimeDir, "internal.sock"),
      routesFile: join(dataDir, "routes.json"),
      pythonRuntime: pythonRuntimeDir,
      python,
      compute,
      gpus,
      keepMs,
      keepFailedMs,
      localRoots,
      version: version(),
      killAt,
      parentPid: process.pid,
      publicUrl,
      maxBodyBytes,
      rules: {
        isLoopbackListener: isLoopbackAddress(host),
        publicHost: publicUrl === undefined ? undefined : new URL(publicUrl).host,
      },
    });
  }

  /** Starts a child, and again whenever it ends, until we stop. */
  private async supervise(role: ChildRole, childOptions: string): Promise<void> {
    let isFirst = true;
    for (let wait = RESTART_FIRST_MS; !this.isStopping; wait = Math.min(RESTART_MAX_MS, wait * 2)) {
      const startedMs = performance.now();
      const code = await this.runChild(role, isFirst ? childOptions : withoutKillPoint(childOptions));
      isFirst = false;
      this.ready.delete(role);
      if (code === EXIT_CANNOT_START) {
        this.exitCode = 1;
        await this.stop();
      }
      if (this.isStopping) return;
      if (performance.now() - startedMs > RESTART_MAX_MS) wait = RESTART_FIRST_MS;
      process.stderr.write(`quern: the ${role} ended (${code}); starting it again\n`);
      // Keeps us alive: both children may be gone at this moment, and nothing else does.
      await pause(wait);
    }
  }

  private runChild(role: ChildRole, childOptions: string): Promise<number | string> {
    const entry = fileURLToPath(new URL("./bin.js", import.meta.url));
    const socket = role === "gateway" ? [this.handle as never] : [];
    const child = spawn(process.execPath, [...NODE_OPTIONS[role], entry, `__${role}`], {
      stdio: ["ignore", "inherit", "inherit", "ipc", ...socket],
      cwd: packageRoot,
      // Not in our process group: Ctrl-C on a terminal reaches us only, and we stop them in order.
      detached: true,
    });
    this.children.set(role, child);
    child.send(childOptions);
    child.on("message", () => this.onReady(role));
    return new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")),
    );
  }

  private onReady(role: ChildRole): void {
    const wasReady = this.ready.size === 2;
    this.ready.add(role);
    if (this.ready.size < 2 || wasReady || this.isStopping) return;
    // Whoever waits for the file must not see half of it.
    const file = join(this.options.dataDir, "address");
    writeFileSync(`${file}.new`, `${this.baseUrl}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    process.stderr.write(`quern is ready at ${this.baseUrl}\n`);
  }

  /** The gateway first, so that no request is lost; then the controller. */
  private async stop(): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    for (const role of ["gateway", "controller"] as const) {
      const child = this.children.get(role);
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) continue;
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await Promise.race([exited, delay(STOP_MS).then(() => child.kill("SIGKILL"))]);
    }
  }
}
