/**
 * Connections to the controller, one for each request. Few requests are with the controller at once: it handles them on
 * one thread, where each may take milliseconds, and the jobs of everybody run there too. The others wait their turn, by
 * sender. No sender has all places: its requests may take long there, because their bodies do not come. Callers without
 * a known key have addresses, and whoever has one address may have thousands. So all of them together get every other
 * turn, and no more places than one sender may have.
 */
import { connect, type Socket } from "node:net";
import { delay } from "../base/clock.ts";
import { FairQueue } from "../base/fair/fair-queue.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  FORWARDED_AT_ONCE_MAX,
  FORWARDED_HOLD_MS,
  FORWARDED_WAITING_OF_A_SENDER_MAX,
} from "../contracts/limits/requests.ts";

/** How long a request waits for its turn, and then for a controller that restarts. */
const WAIT_MS = 5_000;
const RETRY_MS = 20;

export interface ControllerConnection {
  socket: Socket;
  /** The controller has answered: the next request may go. Implied after FORWARDED_HOLD_MS. */
  answered(): void;
}

/** A key, or an address without a known key. */
export interface Sender {
  name: string;
  isStranger: boolean;
}

interface Waiting {
  sender: Sender;
  /** False if it does not want its turn any more. */
  begin: () => boolean;
}

export class ControllerConnections {
  private readonly path: string;
  private atOnce = 0;
  private readonly bySender = new Map<string, number>();
  private strangers = 0;
  private readonly waiting = new FairQueue<Waiting>(FORWARDED_WAITING_OF_A_SENDER_MAX);
  private readonly waitingStrangers = new FairQueue<Waiting>(FORWARDED_WAITING_OF_A_SENDER_MAX);
  private isTurnOfStrangers = false;

  /** `path`: the controller's Unix socket. */
  constructor(path: string) {
    this.path = path;
  }

  /**
   * Undefined if the controller does not answer in time, or `isOver`: the client has left. Throws `server_unavailable`
   * if too many requests of the sender wait already, or the turn of this one does not come in time.
   */
  async connect(sender: Sender, isOver: () => boolean): Promise<ControllerConnection | undefined> {
    if (!(await this.turn(sender, isOver))) return undefined;
    const socket = await connectWithin(this.path, WAIT_MS, isOver);
    if (socket === undefined) {
      this.leave(sender);
      return undefined;
    }
    let isHeld = true;
    const answered = () => {
      clearTimeout(timer);
      if (isHeld) this.leave(sender);
      isHeld = false;
    };
    const timer = setTimeout(answered, FORWARDED_HOLD_MS);
    socket.once("close", answered);
    return { socket, answered };
  }

  /** False if nobody wants its turn any more. */
  private turn(sender: Sender, isOver: () => boolean): Promise<boolean> | boolean {
    if (this.mayTake(sender)) {
      this.take(sender);
      return true;
    }
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(tooLate());
      }, WAIT_MS);
      const begin = () => {
        clearTimeout(timer);
        if (!isLate) resolve(!isOver());
        return !isLate && !isOver();
      };
      const queue = sender.isStranger ? this.waitingStrangers : this.waiting;
      if (queue.push(sender.name, { sender, begin })) return;
      clearTimeout(timer);
      reject(tooManyWaiting());
    });
  }

  private mayTake({ name, isStranger }: Sender): boolean {
    const { most } = this;
    return (this.bySender.get(name) ?? 0) < most && (!isStranger || this.strangers < most);
  }

  /**
   * A sender may have a third of what stays free for others: 8 places if it is alone. The controller takes up to 10 ms
   * for a request that changes something, and everybody else waits for those of all places.
   */
  private get most(): number {
    return (FORWARDED_AT_ONCE_MAX - this.atOnce) / 3;
  }

  private take({ name, isStranger }: Sender): void {
    this.atOnce++;
    if (isStranger) this.strangers++;
    this.bySender.set(name, (this.bySender.get(name) ?? 0) + 1);
  }

  /** Passes the place on to those that still want one. */
  private leave({ name, isStranger }: Sender): void {
    this.atOnce--;
    if (isStranger) this.strangers--;
    const left = this.bySender.get(name)! - 1;
    if (left > 0) this.bySender.set(name, left);
    else this.bySender.delete(name);
    // Without a free place nobody may, and thousands of senders may wait.
    while (this.atOnce < FORWARDED_AT_ONCE_MAX) {
      const next = this.next();
      if (next === undefined) return;
      if (next.begin()) this.take(next.sender);
    }
  }

  private next(): Waiting | undefined {
    const groups = this.isTurnOfStrangers ? [true, false] : [false, true];
    for (const isStranger of groups) {
      const next = this.nextOf(isStranger);
      if (next === undefined) continue;
      this.isTurnOfStrangers = !isStranger;
      return next;
    }
    return undefined;
  }

  private nextOf(isStranger: boolean): Waiting | undefined {
    // Thousands of them may wait, and none may take a place.
    if (isStranger && this.strangers >= this.most) return undefined;
    const queue = isStranger ? this.waitingStrangers : this.waiting;
    return queue.shift((name) => this.mayTake({ name, isStranger }));
  }
}

function tooLate(): ServiceError {
  const seconds = WAIT_MS / 1000;
  const message = `the server is busy: the turn of this request at the controller did not come within ${seconds} s; try again in a second`;
  return new ServiceError("server_unavailable", message, { retryAfterS: 1 });
}

function tooManyWaiting(): ServiceError {
  return new ServiceError(
    "server_unavailable",
    `${FORWARDED_WAITING_OF_A_SENDER_MAX} requests of this sender wait for the controller already; try again in a second`,
    { retryAfterS: 1 },
  );
}

/** Connects to a Unix socket, and tries again while nobody listens. */
async function connectWithin(
  path: string,
  waitMs: number,
  isOver: () => boolean,
): Promise<Socket | undefined> {
  for (
    const deadline = performance.now() + waitMs;
    performance.now() < deadline && !isOver();
    await delay(RETRY_MS)
  ) {
    const socket = await new Promise<Socket | undefined>((resolve) => {
      const attempt = connect({ path });
      attempt.once("connect", () => resolve(attempt)).once("error", () => resolve(undefined));
    });
    if (socket !== undefined) return socket;
  }
  return undefined;
}
