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
import { forgetApiPort, formerApiPort, rememberApiPort } from "./api-port.ts";
import { inBackground, surviveAll } from "./base/boundary.ts";
import { describeShortage, type RoomWait, whenThereIsRoom } from "./base/disk-full.ts";
import { readInstance } from "./database/instance.ts";
import { ConnectionDealer } from "./deal-connections.ts";
import { claimOwnGroup } from "./engine/own-group.ts";
import { outliveReaders, say } from "./observe/words.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { pythonRuntimeDir, runtimeDirectory, version } from "./settings.ts";
import { ALL_IDLE, type ChildRole, SupervisedChild, watchSilence } from "./supervised-child.ts";

/** Never a name: what it resolves to may be another machine's. */
const LOOPBACK = "127.0.0.1";
/** The place of the listener for user code among the sockets, between the main one and the control plane's. */
const INSIDE = 1;
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
  /** What workers may take together, and what the machine has. */
  compute: { cpuMillis: number; memoryBytes: number; machine: { cpuMillis: number; memoryBytes: number } };
  gpus: string;
  secretNames: string[];
  keepMs: number;
  keepFailedMs: number;
  keepEnvironmentsMs: number;
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
  forgetOriginals(dataDir);
  const handles = [await bindSocket(listen.host, listen.port), await bindInside(dataDir)];
  if (controlListen !== undefined) handles.push(await bindSocket(controlListen.host, controlListen.port));
  const runtimeDir = await whenThereIsRoom(async () => runtimeDirectory(dataDir), room);
  const parent = new Parent(options, handles, runtimeDir, claimOwnGroup(options.python));
  return parent.run();
}

/** A gateway starts from the routes of before: in a copied directory they lead to the original's replicas, which have its port too. */
function forgetOriginals(dataDir: string): void {
  if (readInstance(dataDir)?.isCopy === false) return;
  rmSync(routesFile(dataDir), { force: true });
  forgetApiPort(dataDir);
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

/** Where user code calls other APIs: the former port, and another one if that is in use. */
async function bindInside(dataDir: string): Promise<SocketHandle> {
  const bind = (port: number) => bindSocket(LOOPBACK, port);
  return bind(formerApiPort(dataDir)).catch(() => bind(0));
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
  /** The main one, that for user code, and the control plane's, where it has its own. */
  private readonly handles: SocketHandle[];
  /** Of the main one, and of the control plane's. */
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
    if (options.gateways > 1)
      this.dealer = new ConnectionDealer(handles, { gateways: () => this.takingGateways(), last: INSIDE });
    const { listen, controlListen } = options;
    const [main, , control] = handles;
    this.addresses = [this.addressOf(main!, listen.host)];
    if (control !== undefined) this.addresses.push(this.addressOf(control, controlListen!.host));
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
      onIdle: (child) => this.onIdle(child),
    });
  }

  /** Once the server has been ready, nothing but a signal ends it: what serves goes on, whatever became of the rest. */
  private mayTryAgain(): boolean {
    if (this.wasReady) return true;
    this.exitCode = 1;
    this.leave();
    return false;
  }

  /** Those that are leaving take calls of user code still: what they finish may need another API. */
  private takingGateways(): ChildProcess[] {
    const isLeaving = this.stopping.signal.aborted;
    if (isLeaving && this.areAllIdle) return [];
    return this.gateways.flatMap(({ serving, running }) => (isLeaving ? running : serving) ?? []);
  }

  private get areAllIdle(): boolean {
    return this.gateways.every(({ isIdle, running }) => isIdle || running === undefined);
  }

  /** One that somebody else stops need not wait for others. */
  private onIdle(child: SupervisedChild): void {
    if (!this.stopping.signal.aborted) child.running?.send(ALL_IDLE, () => {});
    else if (this.areAllIdle) for (const { running } of this.gateways) running?.send(ALL_IDLE, () => {});
  }

  private addressOf(handle: SocketHandle, host: string): string {
    const protocol = this.options.tls === undefined ? "http" : "https";
    return `${protocol}://${host.includes(":") ? `[${host}]` : host}:${portOf(handle)}`;
  }

  private get apiPort(): number {
    return portOf(this.handles[INSIDE]!);
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
      keepEnvironmentsMs,
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
      keepEnvironmentsMs,
      localRoots,
      continueJobs,
      version: version(),
      ownGroup,
      killAt,
      parentPid: process.pid,
      apiPort: this.apiPort,
      mainUrl: fromHere(this.addresses[0]!),
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
    const address = fromHere(this.addresses.at(-1)!);
    await whenThereIsRoom(async () => {
      writeFileSync(`${file}.new`, `${address}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      rememberApiPort(this.options.dataDir, this.apiPort);
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
    const stopOne = async (gateway: SupervisedChild) => {
      await gateway.stop();
      this.onIdle(gateway);
    };
    await Promise.all(this.gateways.map(stopOne));
    await this.controller.stop();
    this.dealer?.closeLast();
  }
}

function portOf(handle: SocketHandle): number {
  const name: { port?: number } = {};
  handle.getsockname(name);
  return name.port!;
}

/** An address as a program on this machine reaches it. */
function fromHere(address: string): string {
  return address.replace("//0.0.0.0:", `//${LOOPBACK}:`).replace("//[::]:", "//[::1]:");
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
