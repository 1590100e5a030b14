/**
 * The parent of `quern up`: owns the listening socket, starts gateway and controller and starts them again when they
 * die. It holds no state. The socket is shared through the kernel, so that connections wait in its queue, and are not
 * refused, while a gateway is replaced (docs/decisions/0002-listening-socket.md).
 */

import type { ChildProcess } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { type HostRules, isLoopbackAddress } from "./access/host-check.ts";
import { inBackground, surviveAll } from "./base/boundary.ts";
import { describeShortage, type RoomWait, whenThereIsRoom } from "./base/disk-full.ts";
import { readInstance } from "./database/instance.ts";
import { ConnectionDealer } from "./deal-connections.ts";
import { claimOwnGroup } from "./engine/own-group.ts";
import { outliveReaders, say } from "./observe/words.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { pythonRuntimeDir, runtimeDirectory, version } from "./settings.ts";
import { type ChildRole, SupervisedChild, watchSilence } from "./supervised-child.ts";

const BIND_RETRY_MS = 20;
const BIND_MS = 2_000;

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
  sigv4:
    | { credentials: string; regions: string[]; services: string[]; repeats: "reads" | "predictions" }
    | undefined;
  /** Processes that take requests. */
  gateways: number;
  dataDir: string;
  python: string;
  /** What workers may take together. */
  compute: { cpuMillis: number; memoryBytes: number };
  gpus: string;
  secretNames: string[];
  keepMs: number;
  keepFailedMs: number;
  publicUrl: string | undefined;
  maxBodyBytes: number;
  localRoots: string[];
  insecureNoAuth: boolean;
  continueJobs: boolean;
  killAt: string;
}

/** Runs until SIGTERM or SIGINT; resolves to the exit code. */
export async function up(options: UpOptions): Promise<number> {
  outliveReaders();
  const { listen, controlListen, dataDir } = options;
  const room = { onWait: sayWaiting, signal: new AbortController().signal };
  const open = [listen, ...(controlListen === undefined ? [] : [controlListen])].find(
    ({ host }) => !isLoopbackAddress(host),
  );
  if (
    open !== undefined &&
    !options.insecureNoAuth &&
    options.jwt === undefined &&
    !(await whenThereIsRoom(() => hasAnyKey(dataDir), room))
  ) {
    say(
      `quern: refusing to listen on ${open.host}: anyone who reaches it could use your APIs.\n` +
        `  Create a key first: quern keys create --scope predict --data-dir ${dataDir}\n` +
        "  Or accept the risk with --insecure-no-auth.",
    );
    return 1;
  }
  forgetOriginalsRoutes(dataDir);
  const handles = [await bindSocket(listen.host, listen.port)];
  if (controlListen !== undefined) handles.push(await bindSocket(controlListen.host, controlListen.port));
  const runtimeDir = await whenThereIsRoom(async () => runtimeDirectory(dataDir), room);
  const parent = new Parent(options, handles, runtimeDir, claimOwnGroup(options.python));
  return parent.run();
}

/** A gateway starts from the routes of before: in a copied directory they lead to the original's replicas. */
function forgetOriginalsRoutes(dataDir: string): void {
  if (readInstance(dataDir)?.isCopy !== false) rmSync(routesFile(dataDir), { force: true });
}

function routesFile(dataDir: string): string {
  return join(dataDir, "routes.json");
}

function hostRules({ host }: Address, publicUrl: string | undefined): HostRules {
  return {
    isLoopbackListener: isLoopbackAddress(host),
    publicHost: publicUrl === undefined ? undefined : new URL(publicUrl).host,
  };
}

/** Whether there is another way in than by keys, for those who are meant to. */
function takesOthers({ jwt, sigv4 }: UpOptions): boolean {
  return jwt !== undefined || sigv4 !== undefined;
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
  const pause = () => new Promise((resolve) => setTimeout(resolve, BIND_RETRY_MS));
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

/** A test kills the first controller only; the next one has to cope. What is done once at a start is not done again. */
function ofLaterStarts(childOptions: string): string {
  return JSON.stringify({ ...(JSON.parse(childOptions) as object), killAt: "", continueJobs: false });
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
  private readonly gateways: SupervisedChild[];
  private readonly controller: SupervisedChild;
  private readonly stopping = new AbortController();
  private wasReady = false;
  private exitCode = 0;
  /** Where there are several gateways; one has the sockets itself. */
  private readonly dealer: ConnectionDealer | undefined;

  /** `ownGroup`: claimed before any child is there, because they are to be where we are. */
  constructor(options: UpOptions, handles: SocketHandle[], runtimeDir: string, ownGroup: string | undefined) {
    this.options = options;
    this.handles = handles;
    if (options.gateways > 1) this.dealer = new ConnectionDealer(handles, () => this.servingGateways());
    const hosts = [options.listen.host, options.controlListen?.host ?? ""];
    this.addresses = handles.map((handle, at) => this.addressOf(handle, hosts[at]!));
    const childOptions = this.childOptions(runtimeDir, ownGroup);
    this.gateways = Array.from({ length: options.gateways }, (_, number) =>
      this.makeChild("gateway", `gateway ${number}`, childOptions),
    );
    this.controller = this.makeChild("controller", "controller", childOptions);
  }

  async run(): Promise<number> {
    const stop = () => this.leave();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    this.dealer?.start();
    const children = [...this.gateways, this.controller];
    const watch = watchSilence(children, () => this.dealer?.dealWaiting());
    await Promise.all(children.map((child) => child.run(() => this.mayTryAgain())));
    clearInterval(watch);
    return this.exitCode;
  }

  private makeChild(role: ChildRole, name: string, firstOptions: string): SupervisedChild {
    return new SupervisedChild({
      role,
      name,
      sockets: role === "gateway" && this.dealer === undefined ? this.handles : [],
      firstOptions,
      options: ofLaterStarts(firstOptions),
      onReady: () => this.onReady(),
    });
  }

  /** Once the server has been ready, nothing but a signal ends it: what serves goes on, whatever became of the rest. */
  private mayTryAgain(): boolean {
    if (this.wasReady) return true;
    this.exitCode = 1;
    this.leave();
    return false;
  }

  private servingGateways(): ChildProcess[] {
    return this.gateways.flatMap(({ serving }) => (serving === undefined ? [] : [serving]));
  }

  private addressOf(handle: SocketHandle, host: string): string {
    const name: { port?: number } = {};
    handle.getsockname(name);
    const protocol = this.options.tls === undefined ? "http" : "https";
    return `${protocol}://${host.includes(":") ? `[${host}]` : host}:${name.port}`;
  }

  private childOptions(runtimeDir: string, ownGroup: string | undefined): string {
    const {
      listen,
      controlListen,
      trustedProxies,
      tls,
      jwt,
      sigv4,
      gateways,
      publicUrl,
      dataDir,
      python,
      compute,
      gpus,
      secretNames,
      keepMs,
      keepFailedMs,
      maxBodyBytes,
      localRoots,
      continueJobs,
      killAt,
    } = this.options;
    return JSON.stringify({
      dataDir,
      runtimeDir,
      controllerSocket: join(runtimeDir, "controller.sock"),
      internalSocket: join(runtimeDir, "internal.sock"),
      routesFile: routesFile(dataDir),
      pythonRuntime: pythonRuntimeDir,
      python,
      compute,
      gpus,
      secretNames,
      keepMs,
      keepFailedMs,
      localRoots,
      continueJobs,
      version: version(),
      ownGroup,
      killAt,
      parentPid: process.pid,
      publicUrl,
      trustedProxies,
      tls,
      jwt,
      sigv4,
      gateways,
      takesTokens: takesOthers(this.options),
      hasControlListener: controlListen !== undefined,
      maxBodyBytes,
      rules: {
        main: hostRules(listen, publicUrl),
        control: hostRules(controlListen ?? listen, publicUrl),
      },
    });
  }

  private onReady(): void {
    this.dealer?.dealWaiting();
    const areAllReady = [...this.gateways, this.controller].every(({ isReady }) => isReady);
    if (!areAllReady || this.stopping.signal.aborted) return;
    if (!this.wasReady) surviveAll(sayContained);
    this.wasReady = true;
    inBackground(this.announce());
  }

  /** Where the command line finds the control plane. */
  private get addressFile(): string {
    return join(this.options.dataDir, "address");
  }

  /** Whoever waits for the file must not see half of it. The command line talks to the control plane. */
  private async announce(): Promise<void> {
    const file = this.addressFile;
    const address = this.addresses
      .at(-1)!
      .replace("//0.0.0.0:", "//127.0.0.1:")
      .replace("//[::]:", "//[::1]:");
    await whenThereIsRoom(async () => {
      writeFileSync(`${file}.new`, `${address}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    }, this.room).catch(({ message }: Error) =>
      say(`quern: the command line does not find this server: ${message}`),
    );
    const control = this.addresses.length > 1 ? `, its control plane at ${this.addresses[1]}` : "";
    say(`quern is ready at ${this.addresses[0]}${control}`);
  }

  private get room(): RoomWait {
    return { onWait: sayWaiting, signal: this.stopping.signal };
  }

  private leave(): void {
    inBackground(this.stop(), ({ stack }) => {
      say(`quern: it did not stop cleanly: ${stack}`);
      process.exit(1);
    });
  }

  /** The gateways first, so that no request is lost; then the controller. */
  private async stop(): Promise<void> {
    if (this.stopping.signal.aborted) return;
    this.stopping.abort();
    if (this.wasReady) forgetAddress(this.addressFile);
    this.dealer?.close();
    await Promise.all(this.gateways.map((gateway) => gateway.stop()));
    await this.controller.stop();
  }
}

/** The next program that listens there is another one. */
function forgetAddress(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // What is left there leads to nobody: the command line asks whoever answers for a proof.
  }
}

function sayContained(error: Error): void {
  say(`quern: an error reached no boundary; please report it: ${error.stack ?? error.message}`);
}

function sayWaiting(error: unknown): void {
  say(`quern: ${describeShortage(error)}: waiting until there is room`);
}
