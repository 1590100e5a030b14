/**
 * A few places for work that holds much or takes long. Each owner in turn gets the next one, however much work another
 * one has waiting. An owner may have only some of all places. Pure.
 */

/** Work that wants a place. It is called with the function that gives the place back. */
type Begin = (giveBack: () => void) => void;

interface OwnerPlaces {
  taken: number;
  waiting: Set<Begin>;
}

export interface PlacesMost {
  ofAll: number;
  ofAnOwner: number;
}

export class FairPlaces {
  private readonly most: PlacesMost;
  /** Owners that have or want places, in the order of their turns. */
  private readonly byOwner = new Map<string, OwnerPlaces>();
  private taken = 0;

  constructor(most: PlacesMost) {
    this.most = most;
  }

  /** Resolves to the function that gives the place back; undefined if `over` is aborted before there is a place. */
  take(owner: string, over: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      if (over.aborted) return resolve(undefined);
      const places = this.byOwner.get(owner) ?? { taken: 0, waiting: new Set() };
      this.byOwner.set(owner, places);
      const begin: Begin = (giveBack) => {
        over.removeEventListener("abort", leave);
        resolve(giveBack);
      };
      const leave = () => {
        places.waiting.delete(begin);
        this.forget(owner, places);
        resolve(undefined);
      };
      places.waiting.add(begin);
      over.addEventListener("abort", leave, { once: true });
      this.fill();
    });
  }

  /** Whether other work would get the place of work of this owner. */
  isAwaited(owner: string): boolean {
    if (this.waitingOf(owner) > 0) return true;
    if (this.taken < this.most.ofAll) return false;
    for (const { taken, waiting } of this.byOwner.values())
      if (waiting.size > 0 && taken < this.most.ofAnOwner) return true;
    return false;
  }

  waitingOf(owner: string): number {
    return this.byOwner.get(owner)?.waiting.size ?? 0;
  }

  takenOf(owner: string): number {
    return this.byOwner.get(owner)?.taken ?? 0;
  }

  get takenInAll(): number {
    return this.taken;
  }

  private fill(): void {
    // An owner that got a place comes last again, and this loop reaches it there.
    for (const [owner, places] of this.byOwner) {
      if (this.taken >= this.most.ofAll) return;
      const [begin] = places.waiting;
      if (begin === undefined || places.taken >= this.most.ofAnOwner) continue;
      places.waiting.delete(begin);
      places.taken++;
      this.taken++;
      this.byOwner.delete(owner);
      this.byOwner.set(owner, places);
      begin(() => this.giveBack(owner, places));
    }
  }

  private giveBack(owner: string, places: OwnerPlaces): void {
    places.taken--;
    this.taken--;
    this.forget(owner, places);
    this.fill();
  }

  private forget(owner: string, { taken, waiting }: OwnerPlaces): void {
    if (taken === 0 && waiting.size === 0) this.byOwner.delete(owner);
  }
}
