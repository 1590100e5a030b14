/**
 * Waits, one after the other, that an event elsewhere may end early. `Promise.race` would do it too, but a promise keeps
 * what each race added to it, 570 bytes, until it settles: a client that makes a wait of each byte would fill the memory.
 */
export class Interruptible {
  private interruption: { error: unknown } | undefined;
  private endWait: (error: unknown) => void = () => {};

  /** What `promise` resolves to. Rejects if it does, or with the error of `interrupt`. One wait at a time. */
  wait<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.endWait = reject;
      promise.then(resolve, reject);
      if (this.interruption !== undefined) reject(this.interruption.error);
    });
  }

  /** Ends the wait under way, and each later one at once. */
  interrupt(error: unknown): void {
    this.interruption ??= { error };
    this.endWait(error);
  }
}
