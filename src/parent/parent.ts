/**
 * The parent of gateways and controller: starts them, restarts them when they die, announces the server and stops it in
 * order. It holds no state.
 */
import { setTimeout as pause } from "node:timers/promises";
import { inBackground, surviveAll } from "../base/boundary.ts";
import { type DiskWait, describeShortage, whenDiskHasSpace } from "../base/disk-full.ts";
import { END_WITH_ME, type StandbyMessage } from "../contracts/messages.ts";
import { isTerminal, say, tell, tellSoon } from "../observe/words.ts";
import { forgetAddress, writeAddress } from "./address-file.ts";
import { rememberApiPort } from "./api-port.ts";
import { describeStandby } from "./describe-standby.ts";
import { Gateways } from "./gateways.ts";
import type { ListeningSockets } from "./listening-sockets.ts";
import type { Systemd } from "./notify-systemd.ts";
import { SupervisedChild, type SupervisedChildOptions, watchSilence } from "./supervised-child.ts";

export interface ParentOptions extends Pick<SupervisedChildOptions, "program" | "firstOptions" | "options"> {
  dataDir: string;
  gateways: number;
  /** How long the server takes requests after a signal, while it says that it is not ready. */
  drainDelayMs: number;
  systemd: Systemd;
}

export class Parent {
  private readonly dataDir: string;
  private readonly sockets: ListeningSockets;
  private readonly gateways: Gateways;
  private readonly controller: SupervisedChild;
  private readonly drainDelayMs: number;
  private readonly systemd: Systemd;
  private readonly stopping = new AbortController();
  private readonly hurry = new AbortController();
  private wasReady = false;
  private exitCode = 0;

  constructor(
    sockets: ListeningSockets,
    { dataDir, gateways, drainDelayMs, systemd, ...options }: ParentOptions,
  ) {
    this.dataDir = dataDir;
    this.drainDelayMs = drainDelayMs;
    this.systemd = systemd;
    this.sockets = sockets;
    const child = { ...options, onReady: () => this.onReady() };
    this.gateways = new Gateways(gateways, sockets, child);
    this.controller = new SupervisedChild({
      ...{ ...child, role: "controller", name: "controller" },
      sockets: [],
      onIdle: () => {},
      onStandby: (message) => this.onStandby(message),
      onReady: () => {
        this.gateways.stand({ standby: null });
        this.onReady();
      },
    });
  }

  /** Runs until SIGTERM or SIGINT. Resolves to the exit code. */
  async run(): Promise<number> {
    const stop = () => this.leave();
    process.on("SIGTERM", stop).on("SIGINT", stop);
    endWithStarter(stop);
    this.systemd.start();
    this.gateways.start();
    const endWatch = watchSilence(this.children, () => this.gateways.deal());
    await Promise.all(this.children.map((child) => child.run(() => this.mayTryAgain())));
    endWatch();
    await this.systemd.close();
    await tell("info", { event: "server_stopped" }, "the server has stopped");
    return this.exitCode;
  }

  private get children(): SupervisedChild[] {
    return [...this.gateways.children, this.controller];
  }

  /** Once the server was ready, only a signal ends it. What serves continues, even if the rest fails. */
  private mayTryAgain(): boolean {
    if (this.wasReady) return true;
    this.exitCode = 1;
    this.leave();
    return false;
  }

  private onReady(): void {
    this.gateways.deal();
    const areAllReady = this.children.every(({ isReady }) => isReady);
    if (!areAllReady || this.stopping.signal.aborted) return;
    if (!this.wasReady) surviveAll(sayContained);
    this.wasReady = true;
    inBackground(this.announce());
  }

  /** The server waits for its database. For systemd it has started: it may wait for months. */
  private onStandby(message: StandbyMessage): void {
    this.gateways.stand(message);
    this.systemd.ready();
    if (message.standby !== null) say(describeStandby(message.standby));
  }

  /** Writes the address of the control plane for the command line, and says where the server is. */
  private async announce(): Promise<void> {
    const { mainUrl, controlUrl, localUrl, apiPort } = this.sockets;
    await whenDiskHasSpace(async () => {
      writeAddress(this.dataDir, localUrl);
      rememberApiPort(this.dataDir, apiPort);
    }, diskWait(this.stopping.signal)).catch(({ message }: Error) =>
      tell("error", { event: "address_not_written" }, `the command line cannot find this server: ${message}`),
    );
    const control = controlUrl === undefined ? "" : `, its control plane at ${controlUrl}`;
    say(`quern is ready at ${mainUrl}${control}`);
    if (!isTerminal())
      await tell("info", { event: "server_ready", url: mainUrl }, "the server takes requests");
    this.systemd.ready();
  }

  private leave(): void {
    inBackground(this.stop().catch(leaveAfterFault));
  }

  /**
   * Stops the gateways first, so that no request is lost, and then the controller. A second signal ends the drain delay.
   */
  private async stop(): Promise<void> {
    if (this.stopping.signal.aborted) return this.hurry.abort();
    this.stopping.abort();
    this.systemd.stopping();
    await tell("info", { event: "server_stopping" }, "the server stops");
    await this.waitForBalancers();
    if (this.wasReady) forgetAddress(this.dataDir);
    await this.gateways.stop();
    await this.controller.stop();
    this.gateways.closeLast();
  }

  private async waitForBalancers(): Promise<void> {
    const { drainDelayMs, wasReady } = this;
    if (drainDelayMs === 0 || !wasReady) return;
    const seconds = drainDelayMs / 1_000;
    const message = `not ready any more; taking requests for another ${seconds} s`;
    await tell("info", { event: "drain_delay", seconds }, message);
    this.gateways.stopSoon();
    await pause(drainDelayMs, undefined, { signal: this.hurry.signal }).catch(() => {});
  }
}

/** Waits for free disk space until `signal` is aborted, and says so. */
export function diskWait(signal: AbortSignal): DiskWait {
  return {
    onWait: (error) =>
      tellSoon(
        "error",
        { event: "resources_short" },
        `${describeShortage(error)}: waiting for free resources`,
      ),
    signal,
  };
}

function sayContained(error: Error): void {
  tellSoon("error", { event: "internal_error", err: error }, "unhandled error; please report it");
}

async function leaveAfterFault(err: unknown): Promise<never> {
  await tell("error", { event: "stop_failed", err }, "the server did not stop cleanly");
  process.exit(1);
}

/** For `quern dev`, which may be killed. */
function endWithStarter(stop: () => void): void {
  // It has ended already, while this process was loading: its message does not come any more.
  if (process.send !== undefined && !process.connected) return stop();
  process.on("message", (message) => {
    if (message !== END_WITH_ME) return;
    if (process.connected) process.once("disconnect", stop);
    else stop();
    process.channel?.unref();
  });
  process.channel?.unref();
}
