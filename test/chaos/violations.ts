/** Broken promises: reported at once, and counted at the end. */
export class Violations {
  readonly found: string[] = [];
  private readonly startedMs = performance.now();

  add(what: string): void {
    this.found.push(what);
    this.say(`VIOLATION ${what}`);
  }

  say(what: string): void {
    console.log(`${((performance.now() - this.startedMs) / 1000).toFixed(1).padStart(7)} s  ${what}`);
  }
}
