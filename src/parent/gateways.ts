/**
 * All gateways of a server: which of them take connections, and how they stop together. Several gateways get their
 * connections from a dealer. A single one has the sockets itself.
 */
import type { ChildProcess } from "node:child_process";
import type { StandbyMessage } from "../contracts/messages.ts";
import { ConnectionDealer } from "./deal-connections.ts";
import { INSIDE, type ListeningSockets } from "./listening-sockets.ts";
import { ALL_IDLE, STOPS_SOON, SupervisedChild, type SupervisedChildOptions } from "./supervised-child.ts";

export class Gateways {
  readonly children: readonly SupervisedChild[];
  private readonly dealer: ConnectionDealer | undefined;
  private readonly handles: ListeningSockets["handles"];
  private stopsSoon = false;
  /** What they were told last about the database. */
  private standing: StandbyMessage | undefined;
  private isLeaving = false;

  constructor(
    count: number,
    { handles }: ListeningSockets,
    options: Omit<SupervisedChildOptions, "role" | "name" | "sockets" | "onIdle">,
  ) {
    this.handles = handles;
    if (count > 1)
      this.dealer = new ConnectionDealer(handles, { gateways: () => this.taking(), count, last: INSIDE });
    const child = {
      ...options,
      role: "gateway",
      sockets: this.dealer === undefined ? handles : [],
      onIdle: (gateway: SupervisedChild) => this.onIdle(gateway),
      onReady: () => {
        this.tellStop();
        this.tellStanding();
        options.onReady();
      },
    } as const;
    this.children = Array.from(
      { length: count },
      (_, number) => new SupervisedChild({ ...child, name: `gateway ${number}` }),
    );
  }

  start(): void {
    this.dealer?.start();
  }

  /** Called when a gateway may have become ready, or may no longer be. */
  deal(): void {
    this.dealer?.deal();
  }

  /** They take requests as before, but say that they are not ready, so that load balancers send no more. */
  stopSoon(): void {
    this.stopsSoon = true;
    this.tellStop();
  }

  /** This server has the database, or another one: then they refuse requests. */
  stand(message: StandbyMessage): void {
    this.standing = message;
    this.tellStanding();
  }

  /** Stops all. The listener for user code stays open until `closeLast`. */
  async stop(): Promise<void> {
    if (this.dealer === undefined) this.giveUpSockets();
    else await this.dealer.close();
    this.isLeaving = true;
    const stopOne = async (gateway: SupervisedChild) => {
      await gateway.stop();
      this.onIdle(gateway);
    };
    await Promise.all(this.children.map(stopOne));
  }

  /**
   * A single gateway has its own copies, and closes them. As long as the kernel has another copy, it accepts connections
   * that nobody will take: clients would send their requests, and wait for the end of this process.
   */
  private giveUpSockets(): void {
    for (const [listener, handle] of this.handles.entries()) if (listener !== INSIDE) handle.close();
  }

  closeLast(): void {
    this.dealer?.closeLast();
  }

  /** Also for one that has been started since. */
  private tellStop(): void {
    if (this.stopsSoon) for (const { running } of this.children) running?.send(STOPS_SOON, () => {});
  }

  private tellStanding(): void {
    const { standing } = this;
    if (standing !== undefined) for (const { running } of this.children) running?.send(standing, () => {});
  }

  /** Stopping gateways still take calls of user code, because the requests that they finish may need another API. */
  private taking(): ChildProcess[] {
    const { isLeaving } = this;
    if (isLeaving && this.areAllIdle) return [];
    return this.children.flatMap(({ serving, running }) => (isLeaving ? running : serving) ?? []);
  }

  private get areAllIdle(): boolean {
    return this.children.every(({ isIdle, running }) => isIdle || running === undefined);
  }

  /** A gateway that somebody else stops does not wait for the others. */
  private onIdle(gateway: SupervisedChild): void {
    if (!this.isLeaving) gateway.running?.send(ALL_IDLE, () => {});
    else if (this.areAllIdle) for (const { running } of this.children) running?.send(ALL_IDLE, () => {});
  }
}
