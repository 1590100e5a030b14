/** Looks for requests past their deadline, only while there are requests: a gateway that nobody asks does not wake up. */

const EXPIRE_EVERY_MS = 25;

export class Expiry {
  private readonly expire: (nowMs: number) => boolean;
  private timer: NodeJS.Timeout | undefined;

  /** `expire` answers what is past its time, and says whether anything is left to look at. */
  constructor(expire: (nowMs: number) => boolean) {
    this.expire = expire;
  }

  /** There is something to look at. Called with each request. */
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
