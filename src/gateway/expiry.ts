/** Looks for requests past their deadline, but only while there are requests: an idle gateway does not wake up. */

const EXPIRE_EVERY_MS = 25;

export class Expiry {
  private readonly expire: (nowMs: number) => boolean;
  private timer: NodeJS.Timeout | undefined;

  /** `expire` fails the requests past their deadline, and returns whether any requests are left. */
  constructor(expire: (nowMs: number) => boolean) {
    this.expire = expire;
  }

  /** Starts the timer. Called with each request. */
  arm(): void {
    this.timer ??= setInterval(() => {
      if (!this.expire(performance.now())) this.stop();
    }, EXPIRE_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
