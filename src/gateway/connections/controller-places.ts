/**
 * Places of requests that are with the controller at once. No sender has all of them: its requests may take long there,
 * because their bodies do not come. Callers without a known key have addresses, and whoever has one address may have
 * thousands. So all of them together get every other turn, and no more places than one sender may have.
 */
import { FairQueue } from "../../base/fair/fair-queue.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { FORWARDED_WAIT_MS, FORWARDED_WAITING_OF_A_SENDER_MAX } from "../../contracts/limits/requests.ts";

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

export class ControllerPlaces {
  private readonly places: number;
  private atOnce = 0;
  private readonly bySender = new Map<string, number>();
  private strangers = 0;
  private readonly waiting = new FairQueue<Waiting>(FORWARDED_WAITING_OF_A_SENDER_MAX);
  private readonly waitingStrangers = new FairQueue<Waiting>(FORWARDED_WAITING_OF_A_SENDER_MAX);
  private isTurnOfStrangers = false;

  /** `places`: how many there are. */
  constructor(places: number) {
    this.places = places;
  }

  /**
   * False if nobody wants its turn any more; otherwise `leave` must follow. Throws `server_unavailable` if too many
   * requests of the sender wait already, or the turn of this one does not come in time.
   */
  turn(sender: Sender, isOver: () => boolean): Promise<boolean> | boolean {
    if (this.mayTake(sender)) {
      this.take(sender);
      return true;
    }
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(tooLate());
      }, FORWARDED_WAIT_MS);
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
   * A sender may have a third of what stays free for others, so a quarter of all if it is alone. The controller takes up to 10 ms
   * for a request that changes something, and everybody else waits for those of all places.
   */
  private get most(): number {
    return (this.places - this.atOnce) / 3;
  }

  private take({ name, isStranger }: Sender): void {
    this.atOnce++;
    if (isStranger) this.strangers++;
    this.bySender.set(name, (this.bySender.get(name) ?? 0) + 1);
  }

  /** Passes the place on to those that still want one. */
  leave({ name, isStranger }: Sender): void {
    this.atOnce--;
    if (isStranger) this.strangers--;
    const left = this.bySender.get(name)! - 1;
    if (left > 0) this.bySender.set(name, left);
    else this.bySender.delete(name);
    // Without a free place nobody may, and thousands of senders may wait.
    while (this.atOnce < this.places) {
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
  const seconds = FORWARDED_WAIT_MS / 1000;
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
