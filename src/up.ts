/**
 * The parent of `quern up`: owns the listening socket, starts gateway and controller, and restarts them when they die.
 * It holds no state. The socket is shared through the kernel. So connections wait in its queue, and are not refused,
 * while a gateway is replaced (docs/decisions/0002-listening-socket.md).
 */

import type { ChildProcess } from "node:child_process";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { availableParallelism, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { isLoopbackAddress } from "./access/host-check.ts";
import { inBackground, surviveAll } from "./base/boundary.ts";
import { type DiskWait, describeShortage, whenDiskHasSpace } from "./base/disk-full.ts";
import { addressFile, routesFile } from "./contracts/data-layout.ts";
import { readInstance } from "./database/instance.ts";
import { claimDelegatedCgroup } from "./engine/delegated-cgroup.ts";
import { outliveReaders, say } from "./observe/words.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { forgetApiPort, formerApiPort, rememberApiPort } from "./parent/api-port.ts";
import { ConnectionDealer } from "./parent/deal-connections.ts";
import { ALL_IDLE, type ChildRole, SupervisedChild, watchSilence } from "./parent/supervised-child.ts";
import { type RunOptions, writeChildOptions } from "./settings/child-options.ts";
import { runtimeDirectory } from "./settings/runtime-directory.ts";
import type { ServerOptions } from "./settings/server-options.ts";

/** An address and not a name, because a name may resolve to another machine's address. */
const LOOPBACK = "127.0.0.1";
/** The index of the listener for user code, between the main socket and the control plane's. */
const INSIDE = 1;
const BIND_RETRY_MS = 20;
const BIND_MS = 2_000;

/** Runs until SIGTERM or SIGINT. Resolves to the exit code. */
export async function up(options: ServerOptions): Promise<number> {
  outliveReaders();
  const { listen, controlListen, dataDir } = options;
  const diskWait = { onWait: sayWaiting, signal: new AbortController().signal };
  const open = [listen, ...(controlListen === undefined ? [] : [controlListen])].find(
    ({ host }) => !isLoopbackAddress(host),
  );
  if (
    open !== undefined &&
    !options.insecureNoAuth &&
    options.jwt === undefined &&
    !(await whenDiskHasSpace(() => hasAnyKey(dataDir), diskWait))
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
  const runtimeDir = await whenDiskHasSpace(async () => runtimeDirectory(dataDir), diskWait);
  const parent = new Parent(options, handles, {
    runtimeDir,
    machine: machine(),
    delegatedCgroup: claimDelegatedCgroup(options.python),
  });
  return parent.run();
}

/**
 * A gateway starts from the stored routes. In a copied directory they lead to the original's replicas, and the stored
 * port is the original's too.
 */
function forgetOriginals(dataDir: string): void {
  if (readInstance(dataDir)?.isCopy === false) return;
  rmSync(routesFile(dataDir), { force: true });
  forgetApiPort(dataDir);
}

function machine(): RunOptions["machine"] {
  const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return { cpuMillis: availableParallelism() * 1000, memoryBytes };
}

/**
 * Binds a socket that does not accept here: only the gateways, which inherit it, accept. If the address is in use, it
 * retries for a moment, because the gateway of a killed parent may be about to end.
 */
async function bindSocket(host: string, port: number): Promise<SocketHandle> {
  // The function behind the shared handles of node:cluster. No public function binds without accepting.
  const { _createServerHandle } = net as unknown as {
    _createServerHandle: (host: string, port: number, family: number) => SocketHandle | number;
  };
  // Nothing else keeps this process alive yet, so the timer must.
  const pause = () => new Promise((resolve) => setTimeout(resolve, BIND_RETRY_MS));
  for (const deadline = performance.now() + BIND_MS; ; await pause()) {
    const handle = _createServerHandle(host, port, net.isIPv6(host) ? 6 : 4);
    // getsockname reports an address in use, because libuv delays the error of the bind.
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

/** Binds the listener for calls of user code: to the former port, or to another one if that is in use. */
async function bindInside(dataDir: string): Promise<SocketHandle> {
  const bind = (port: number) => bindSocket(LOOPBACK, port);
  return bind(formerApiPort(dataDir)).catch(() => bind(0));
}

interface SocketHandle {
  /** Returns 0, or the error's number. */
  getsockname(out: { address?: string; port?: number }): number;
  close(): void;
}

class Parent {
  private readonly options: ServerOptions;
  /** The main socket, the one for user code, and the control plane's if it is separate. */
  private readonly handles: SocketHandle[];
  /** The addresses of the main listener and of a separate control plane. */
  private readonly addresses: string[];
  private readonly gateways: SupervisedChild[];
  private readonly controller: SupervisedChild;
  private readonly stopping = new AbortController();
  private wasReady = false;
  private exitCode = 0;
  /** Only with several gateways. A single one has the sockets itself. */
  private readonly dealer: ConnectionDealer | undefined;

  /**
   * `known` includes the control group, which was claimed before any child started: children must be in the same group
   * as the parent.
   */
  constructor(
    options: ServerOptions,
    handles: SocketHandle[],
    known: Pick<RunOptions, "runtimeDir" | "machine" | "delegatedCgroup">,
  ) {
    this.options = options;
    this.handles = handles;
    if (options.gateways > 1)
      this.dealer = new ConnectionDealer(handles, { gateways: () => this.takingGateways(), last: INSIDE });
    const { listen, controlListen } = options;
    const [main, , control] = handles;
    this.addresses = [this.addressOf(main!, listen.host)];
    if (control !== undefined) this.addresses.push(this.addressOf(control, controlListen!.host));
    const run = {
      ...known,
      parentPid: process.pid,
      apiPort: this.apiPort,
      mainUrl: fromHere(this.addresses[0]!),
    };
    this.gateways = Array.from({ length: options.gateways }, (_, number) =>
      this.makeChild("gateway", `gateway ${number}`, run),
    );
    this.controller = this.makeChild("controller", "controller", run);
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

  private makeChild(role: ChildRole, name: string, run: RunOptions): SupervisedChild {
    return new SupervisedChild({
      role,
      program: fileURLToPath(new URL("./bin.js", import.meta.url)),
      name,
      sockets: role === "gateway" && this.dealer === undefined ? this.handles : [],
      firstOptions: writeChildOptions(this.options, run),
      // A test kills only the first controller, and an action of the first start is not repeated.
      options: writeChildOptions({ ...this.options, killAt: "", continueJobs: false }, run),
      onReady: () => this.onReady(),
      onIdle: (child) => this.onIdle(child),
    });
  }

  /** Once the server was ready, only a signal ends it. What serves continues, even if the rest fails. */
  private mayTryAgain(): boolean {
    if (this.wasReady) return true;
    this.exitCode = 1;
    this.leave();
    return false;
  }

  /** Stopping gateways still take calls of user code, because the requests that they finish may need another API. */
  private takingGateways(): ChildProcess[] {
    const isLeaving = this.stopping.signal.aborted;
    if (isLeaving && this.areAllIdle) return [];
    return this.gateways.flatMap(({ serving, running }) => (isLeaving ? running : serving) ?? []);
  }

  private get areAllIdle(): boolean {
    return this.gateways.every(({ isIdle, running }) => isIdle || running === undefined);
  }

  /** A gateway that somebody else stops does not wait for the others. */
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

  private onReady(): void {
    this.dealer?.dealWaiting();
    const areAllReady = [...this.gateways, this.controller].every(({ isReady }) => isReady);
    if (!areAllReady || this.stopping.signal.aborted) return;
    if (!this.wasReady) surviveAll(sayContained);
    this.wasReady = true;
    inBackground(this.announce());
  }

  /** The file in which the command line finds the control plane. */
  private get addressFile(): string {
    return addressFile(this.options.dataDir);
  }

  /**
   * Writes the address of the control plane for the command line. The file is renamed into place, so that nobody reads
   * half of it.
   */
  private async announce(): Promise<void> {
    const file = this.addressFile;
    const address = fromHere(this.addresses.at(-1)!);
    await whenDiskHasSpace(async () => {
      writeFileSync(`${file}.new`, `${address}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      rememberApiPort(this.options.dataDir, this.apiPort);
    }, this.diskWait).catch(({ message }: Error) =>
      say(`quern: the command line does not find this server: ${message}`),
    );
    const control = this.addresses.length > 1 ? `, its control plane at ${this.addresses[1]}` : "";
    say(`quern is ready at ${this.addresses[0]}${control}`);
  }

  private get diskWait(): DiskWait {
    return { onWait: sayWaiting, signal: this.stopping.signal };
  }

  private leave(): void {
    inBackground(this.stop(), ({ stack }) => {
      say(`quern: it did not stop cleanly: ${stack}`);
      process.exit(1);
    });
  }

  /** Stops the gateways first, so that no request is lost, and then the controller. */
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

/** The address that a program on this machine uses. */
function fromHere(address: string): string {
  return address.replace("//0.0.0.0:", `//${LOOPBACK}:`).replace("//[::]:", "//[::1]:");
}

/** Removes the address, because another program may listen there later. */
function forgetAddress(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // A stale address does no harm: the command line asks every server for a proof.
  }
}

function sayContained(error: Error): void {
  say(`quern: an error reached no boundary; please report it: ${error.stack ?? error.message}`);
}

function sayWaiting(error: unknown): void {
  say(`quern: ${describeShortage(error)}: waiting until there is room`);
}
