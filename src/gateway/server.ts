/**
 * The data-plane process, with all its parts wired together. It owns no state: routes come from the controller or its
 * snapshot file, and listening sockets from the parent.
 */

import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { BodyBudget } from "../access/body-budget.ts";
import type { HostRules } from "../access/host-check.ts";
import type { JwtVerifier } from "../access/jwt.ts";
import { PaceWatch } from "../access/pace-watch.ts";
import { parseCredentials, type SignatureRules } from "../access/sigv4.ts";
import { contain } from "../base/boundary.ts";
import { processLog } from "../base/log.ts";
import { every } from "../base/loop/pulse.ts";
import {
  HELD_BODIES_BYTES_MAX,
  HELD_SMALL_BODIES_BYTES,
  REQUEST_BYTES,
  SHADOW_COPIES_BYTES_MAX,
  SMALL_BODY_BYTES,
  USUAL_HEAD_BYTES,
} from "../contracts/limits/requests.ts";
import type { AddressRoute, ReplicaRoute } from "../contracts/routes.ts";
import { AccessLog } from "../observe/access-log.ts";
import { LoopDelayMeter } from "../observe/loop-delay.ts";
import { requestIdOf } from "./connections/request-ids.ts";
import type { TlsFiles } from "./connections/tls-context.ts";
import { ControlPlane } from "./control-plane.ts";
import { ControllerConnections } from "./controller-connections.ts";
import { Authorization, type SignatureRepeats } from "./door/authorization.ts";
import { ClientAddress } from "./door/client-address.ts";
import { Listener, type ListenOn } from "./door/listener.ts";
import { Expiry } from "./expiry.ts";
import { Inside } from "./inside.ts";
import { Predictions } from "./predictions.ts";
import { RouteTable } from "./replicas/route-table.ts";
import { ShadowCopies } from "./replicas/shadow-copies.ts";
import { ControllerMessages, CountsReport, UsedKeys } from "./report-to-controller.ts";
import { Router } from "./router.ts";
import type { Entrance } from "./visit.ts";

const REPORT_EVERY_MS = 1_000;
/** While no requests come, only a new controller has something to learn. */
const REPORT_IDLE_MS = 5_000;
/** A call from a job may wait for a nested call, which no listener accepts any more. */
const LAST_CALLS_MS = 5_000;

export interface SignatureOptions {
  /** The path of the file with the credentials. */
  credentials: string;
  /** Empty means any. */
  regions: readonly string[];
  services: readonly string[];
  repeats: SignatureRepeats;
}

export interface GatewayOptions {
  /** The parent's listening socket, or an address to listen on. */
  listen: ListenOn;
  /** `--control-listen`: the control plane is here instead; APIs with `api_gateway: none` are reachable here too. */
  controlListen: ListenOn | undefined;
  /** On loopback, without TLS: user code calls other APIs here. */
  insideListen: ListenOn;
  apiPort: number;
  /** The main listener's address, as a client on this machine reaches it. */
  mainUrl: string;
  tls: TlsFiles | undefined;
  controllerSocket: string;
  /** The controller's socket for gateways only. */
  internalSocket: string;
  routesFile: string;
  /** Rules of the main listener, and of the control plane's listener. */
  rules: Record<"main" | "control", HostRules>;
  publicUrl: string | undefined;
  trustedProxies: readonly string[];
  /** Verifies the tokens that are accepted besides keys. */
  jwt: JwtVerifier | undefined;
  /** AWS signatures that are accepted besides keys. */
  sigv4: SignatureOptions | undefined;
  /** How many gateways share the load, this one included. */
  gateways: number;
  maxBodyBytes: number;
  /** Other servers may have the database (`--state`): this one is not ready before it knows. */
  isShared: boolean;
  /** The file of the access log; undefined if there is none. */
  accessLog: string | undefined;
}

export class Gateway {
  private readonly routes: RouteTable;
  readonly router: Router;
  private readonly report: CountsReport;
  private readonly usedKeys: UsedKeys;
  private readonly inside: Inside;
  private readonly insideListener: Listener;
  private readonly listeners: Listener[];
  private readonly loop = new LoopDelayMeter({
    isBusy: () => this.routes.underWay > 0,
    onChange: (isBusy) => this.reportEvery(isBusy ? REPORT_EVERY_MS : REPORT_IDLE_MS),
  });
  private readonly expiry = new Expiry((nowMs) => this.routes.expire(nowMs));
  private readonly accessLog: AccessLog | undefined;
  private endReports = () => {};

  constructor(options: GatewayOptions) {
    const messages = new ControllerMessages(options.internalSocket);
    const { routesFile: file, internalSocket, publicUrl, trustedProxies, maxBodyBytes, tls } = options;
    this.routes = new RouteTable({
      file,
      internalSocket,
      pool: {
        kill: (replica) => messages.kill(replica),
        replace: (replica) => messages.replace(replica),
        wake: (api) => messages.wake(api),
        broken: logBroken,
        onDeadline: () => this.expiry.arm(),
      },
      onApplied: () => this.inside.endRevoked(),
    });
    this.report = new CountsReport(messages, this.routes, this.loop);
    this.usedKeys = new UsedKeys(messages);
    const authorization = new Authorization({
      onUsed: (id) => this.usedKeys.note(id),
      findKey: (sha256) => this.routes.principal(sha256),
      keysVersion: () => this.routes.keysVersion,
      jwt: options.jwt,
      signatures: options.sigv4 === undefined ? undefined : signatureRules(options.sigv4),
      gateways: options.gateways,
    });
    const bodies = new BodyBudget({
      // A body of the largest size comes with its head.
      most: Math.max(HELD_BODIES_BYTES_MAX, maxBodyBytes + SMALL_BODY_BYTES + HELD_SMALL_BODIES_BYTES),
      forSmall: HELD_SMALL_BODIES_BYTES,
      smallBytes: SMALL_BODY_BYTES + USUAL_HEAD_BYTES + REQUEST_BYTES,
    });
    const asksForKey = ({ endpoint }: AddressRoute) =>
      this.routes.endpoints.find(endpoint)?.address.needs_key === true;
    const copies = new ShadowCopies(Math.max(SHADOW_COPIES_BYTES_MAX, maxBodyBytes + SMALL_BODY_BYTES));
    this.accessLog = options.accessLog === undefined ? undefined : new AccessLog(options.accessLog);
    const { accessLog } = this;
    const rulesOfBodies = { maxBodyBytes, bodies, copies, pace: new PaceWatch(), accessLog };
    const predictions = new Predictions({ ...rulesOfBodies, authorization, asksForKey });
    const clients = new ClientAddress({ publicUrl, trustedProxies, isTls: tls !== undefined });
    const { listen, controlListen, rules, mainUrl } = options;
    const controller = new ControllerConnections(options.controllerSocket);
    const controlPlane = new ControlPlane({ authorization, bodies, clients, controller });
    const answering = { authorization, clients, predictions, controlPlane };
    this.router = new Router({ routes: this.routes, ...answering }, options.isShared);
    this.inside = new Inside({
      routes: this.routes,
      // User code needs its capability and no key.
      predictions: new Predictions({ ...rulesOfBodies, authorization, asksForKey: () => false }),
      port: options.apiPort,
      controller,
      bodies,
      baseUrl: publicUrl ?? mainUrl,
    });
    this.insideListener = new Listener(options.insideListen, undefined, (request, response) => {
      this.loop.touch();
      this.inside.take({ request, response, requestId: requestIdOf(request) });
    });
    const open = (on: ListenOn, entrance: Entrance) =>
      new Listener(on, tls, (request, response) => {
        this.loop.touch();
        this.router.take({ request, response, requestId: requestIdOf(request), entrance });
      });
    this.listeners = [
      open(listen, { name: "main", hasControl: controlListen === undefined, rules: rules.main }),
      ...(controlListen === undefined
        ? []
        : [open(controlListen, { name: "control", hasControl: true, rules: rules.control })]),
    ];
  }

  async start(): Promise<void> {
    await this.routes.start();
    this.reportEvery(REPORT_IDLE_MS);
    for (const listener of [this.insideListener, ...this.listeners]) await listener.start();
  }

  private reportEvery(ms: number): void {
    this.endReports();
    this.endReports = every(ms, "the report to the controller", () => {
      this.report.sendIfChanged();
      this.usedKeys.send();
    });
  }

  /**
   * A connection that the parent accepted: on the main listener (0), the one for user code (1) or the control plane's
   * (2).
   */
  accept(socket: Socket, listener: number): void {
    const [main, control] = this.listeners;
    contain(
      "a connection",
      () => [main, this.insideListener, control][listener]!.accept(socket),
      () => socket.destroy(),
    );
  }

  /** Takes requests as before, but says that it is not ready. */
  stopSoon(): void {
    this.router.stopsSoon = true;
  }

  /**
   * Accepts no new connections, and responds to requests under way. These may call other APIs, so the listener for user
   * code stays open until `allAreIdle` resolves: no gateway has requests from outside. Then calls from jobs wait until
   * the server stops their workers. If they were refused instead, batches would use up their attempts.
   */
  async stop(allAreIdle: () => Promise<void>, isParentGone: boolean): Promise<void> {
    this.stopSoon();
    const isIdle = () => this.routes.underWay <= this.inside.ofJobs;
    // The next parent needs the port at once, and its gateways accept those calls.
    const first = isParentGone ? [...this.listeners, this.insideListener] : this.listeners;
    await Promise.all(first.map((listener) => listener.drain(isIdle)));
    await allAreIdle();
    const endMs = performance.now() + LAST_CALLS_MS;
    await this.insideListener.drain(() => this.routes.underWay === 0 || performance.now() > endMs);
    this.expiry.stop();
    this.loop.stop();
    this.endReports();
    await this.accessLog?.flush();
    this.usedKeys.send();
    await this.report.sendLast();
    await this.routes.stop();
  }
}

function logBroken({ worker_id }: ReplicaRoute, broken: string): void {
  const fields = { event: "replica_broke_protocol", worker_id, broken } as const;
  processLog().error(fields, "a replica broke the protocol and is replaced");
}

function signatureRules({ credentials, regions, services, repeats }: SignatureOptions): SignatureRules & {
  repeats: SignatureRepeats;
} {
  return {
    credentials: parseCredentials(readFileSync(credentials, "utf8")),
    scope: { regions, services },
    repeats,
  };
}
