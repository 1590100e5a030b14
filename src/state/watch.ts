/** Notices that another server has taken the state, for a server whose database cannot tell: a copy of it has the same. */
import type { Log } from "../base/log.ts";
import { every } from "../base/loop/pulse.ts";
import type { Service } from "../base/service.ts";
import { STATE_WATCH_MS } from "../contracts/limits/stores.ts";
import type { ObjectStore } from "../object-store/object-store.ts";
import { findOwner } from "./owner.ts";

export interface StateWatchOptions {
  store: ObjectStore;
  log: Log;
  /** The token that this server has written. */
  token: string;
  /** The address of the state, for messages. */
  address: string;
  /** Another server has it: this one stops. */
  onTaken: () => void;
}

export class StateWatch implements Service {
  private readonly options: StateWatchOptions;
  private stopTimer: () => void = () => {};
  private running: Promise<void> = Promise.resolve();

  constructor(options: StateWatchOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    this.stopTimer = every(STATE_WATCH_MS, "the watch of the state", () => {
      this.running = this.runOnce();
    });
  }

  async stop(): Promise<void> {
    this.stopTimer();
    await this.running;
  }

  /** A store that does not respond says nothing about its owner. */
  async runOnce(): Promise<void> {
    const { store, log, token, address, onTaken } = this.options;
    const found = await findOwner(store).catch(() => undefined);
    if (found === undefined || found.token === token) return;
    this.stopTimer();
    log.error(
      { event: "state_taken" },
      `another server has taken the state ${address}; this one stops. If that is no standby, give each database a state of its own`,
    );
    onTaken();
  }
}
