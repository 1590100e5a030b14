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
import { ConnectionDealer } from "./deal-connections.ts";
import { claimOwnGroup } from "./engine/own-group.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { packageRoot, pythonRuntimeDir, runtimeDirectory, version } from "./settings.ts";

const RESTART_FIRST_MS = 20;
const RESTART_MAX_MS = 2_000;
const STOP_MS = 30_000;
const BIND_MS = 2_000;
/** A child that cannot start, and says why itself, ends with this code: starting it again would change nothing. */
export const EXIT_CANNOT_START = 78;

interface Address {
  host: string;
  port: number;
}

export interface UpOptions {
  listen: Address;
  /** Of the control plane, where it is not on the same. */
  controlListen: Address | undefined;
  trustedProxies: string[];
  tls: { cert: string; key: string } | undefined;
  jwt: { issuer: string; audience: string; jwks: string; scopesClaim: string } | undefined;
  sigv4Credentials: string | undefined;
  /** Processes that take requests. */
  gateways: number;
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
  const { listen, controlListen, dataDir } = options;
  const open = [listen, ...(controlListen === undefined ? [] : [controlListen])].find(
    ({ host }) => !isLoopbackAddress(host),
  );
  if (
    open !== undefined &&
    !options.insecureNoAuth &&
    options.jwt === undefined &&
    !(await hasAnyKey(dataDir))
  ) {
    process.stderr.write(
      `quern: refusing to listen on ${open.host}: anyone who reaches it could use your APIs.\n` +
        `  Create a key first: quern keys create --scope predict --data-dir ${dataDir}\n` +
        "  Or accept the risk with --insecure-no-auth.\n",
    );
    return 1;
  }
  const handles = [await bindSocket(listen.host, listen.port)];
  if (controlListen !== undefined) handles.push(await bindSocket(controlListen.host, controlListen.port));
  const parent = new Parent(options, handles);
  return parent.run();
}

/** Whether there is another way in than by keys, for those who are meant to. */
function takesOthers({ jwt, sigv4Credentials }: UpOptions): boolean {
  return jwt !== undefined || sigv4Credentials !== undefined;
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
  for (const deadline = performance.now() + BIND_MS; ; await pause()) {
    const handle = _createServerHandle(host, port, net.isIPv6(host) ? 6 : 4);
    // An address in use is told by getsockname: libuv keeps the error of the bind for later.
    if (typeof handle !== "number") {
      if (handle.getsockname({}) === 0) return handle;
      handle.close();
    }
    if (performance.now() > deadline) {
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
  /** The main one, and the control plane's, where it has its own. */
  private readonly handles: SocketHandle[];
  private readonly addresses: string[];
  /** By name: the controller, and gateways with their number. */
  private readonly children = new Map<string, ChildProcess>();
  private readonly ready = new Set<string>();
  private isStopping = false;
  private exitCode = 0;
  /** Before any child is there: they are to be where we are. */
  private readonly ownGroup: string | undefined;
  /** Where there are several gateways; one has the sockets itself. */
  private readonly dealer: ConnectionDealer | undefined;

  constructor(options: UpOptions, handles: SocketHandle[]) {
    this.options = options;
    this.handles = handles;
    this.ownGroup = claimOwnGroup(options.python);
    if (options.gateways > 1) this.dealer = new ConnectionDealer(handles, () => this.readyGateways());
    const hosts = [options.listen.host, options.controlListen?.host ?? ""];
    this.addresses = handles.map((handle, at) => this.addressOf(handle, hosts[at]!));
  }

  async run(): Promise<number> {
    const childOptions = this.childOptions();
    const stop = () => void this.stop();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    this.dealer?.start();
    const gateways = this.gatewayNames.map((name) => this.supervise("gateway", name, childOptions));
    await Promise.all([this.supervise("controller", "controller", childOptions), ...gateways]);
    return this.exitCode;
  }

  private get gatewayNames(): string[] {
    return Array.from({ length: this.options.gateways }, (_, number) => `gateway ${number}`);
  }

  private readyGateways(): ChildProcess[] {
    return this.gatewayNames.filter((name) => this.ready.has(name)).map((name) => this.children.get(name)!);
  }

  private addressOf(handle: SocketHandle, host: string): string {
    const name: { port?: number } = {};
    handle.getsockname(name);
    const protocol = this.options.tls === undefined ? "http" : "https";
    return `${protocol}://${host.includes(":") ? `[${host}]` : host}:${name.port}`;
  }

  private childOptions(): string {
    const {
      listen,
      controlListen,
      trustedProxies,
      tls,
      jwt,
      sigv4Credentials,
      gateways,
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
      ownGroup: this.ownGroup,
      killAt,
      parentPid: process.pid,
      publicUrl,
      trustedProxies,
      tls,
      jwt,
      sigv4Credentials,
      gateways,
      takesTokens: takesOthers(this.options),
      hasControlListener: controlListen !== undefined,
      maxBodyBytes,
      rules: {
        isLoopbackListener: isLoopbackAddress(listen.host),
        publicHost: publicUrl === undefined ? undefined : new URL(publicUrl).host,
      },
    });
  }

  /** Starts a child, and again whenever it ends, until we stop. */
  private async supervise(role: ChildRole, name: string, childOptions: string): Promise<void> {
    let isFirst = true;
    for (let wait = RESTART_FIRST_MS; !this.isStopping; wait = Math.min(RESTART_MAX_MS, wait * 2)) {
      const startedMs = performance.now();
      const code = await this.runChild(role, name, isFirst ? childOptions : withoutKillPoint(childOptions));
      isFirst = false;
      this.ready.delete(name);
      if (code === EXIT_CANNOT_START) {
        this.exitCode = 1;
        await this.stop();
      }
      if (this.isStopping) return;
      if (performance.now() - startedMs > RESTART_MAX_MS) wait = RESTART_FIRST_MS;
      process.stderr.write(`quern: the ${name} ended (${code}); starting it again\n`);
      // Keeps us alive: both children may be gone at this moment, and nothing else does.
      await pause(wait);
    }
  }

  private runChild(role: ChildRole, name: string, childOptions: string): Promise<number | string> {
    const entry = fileURLToPath(new URL("./bin.js", import.meta.url));
    const sockets = role === "gateway" && this.dealer === undefined ? (this.handles as never[]) : [];
    const child = spawn(process.execPath, [...NODE_OPTIONS[role], entry, `__${role}`], {
      stdio: ["ignore", "inherit", "inherit", "ipc", ...sockets],
      cwd: packageRoot,
      // Not in our process group: Ctrl-C on a terminal reaches us only, and we stop them in order.
      detached: true,
    });
    this.children.set(name, child);
    child.send(childOptions);
    child.on("message", (text) => (text === "ready" ? this.onReady(name) : this.ready.delete(name)));
    return new Promise((resolve) =>
      child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown")),
    );
  }

  private onReady(name: string): void {
    const all = this.options.gateways + 1;
    const wasReady = this.ready.size === all;
    this.ready.add(name);
    this.dealer?.dealWaiting();
    if (this.ready.size < all || wasReady || this.isStopping) return;
    // Whoever waits for the file must not see half of it. The command line talks to the control plane.
    const file = join(this.options.dataDir, "address");
    const address = this.addresses
      .at(-1)!
      .replace("//0.0.0.0:", "//127.0.0.1:")
      .replace("//[::]:", "//[::1]:");
    writeFileSync(`${file}.new`, `${address}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    const control = this.addresses.length > 1 ? `, its control plane at ${this.addresses[1]}` : "";
    process.stderr.write(`quern is ready at ${this.addresses[0]}${control}\n`);
  }

  /** The gateways first, so that no request is lost; then the controller. */
  private async stop(): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    this.dealer?.close();
    await Promise.all(this.gatewayNames.map((name) => this.stopChild(name)));
    await this.stopChild("controller");
  }

  private async stopChild(name: string): Promise<void> {
    const child = this.children.get(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await Promise.race([exited, delay(STOP_MS).then(() => child.kill("SIGKILL"))]);
  }
}
