/**
 * How many jobs enqueue at once. Each holds its selection of files, which may be megabytes, and lists and reads on the
 * event loop. The others wait for a place: each API in turn gets the next one, however many jobs another one has. Pure.
 */
import { ENQUEUING_MAX, ENQUEUING_OF_AN_API_MAX } from "../../contracts/limits/jobs.ts";

/** A job that wants a place. It is called with the function that gives the place back. */
type Begin = (giveBack: () => void) => void;

interface ApiPlaces {
  taken: number;
  waiting: Set<Begin>;
}

/** Items that came with the submission are enqueued in milliseconds: they do not wait behind listings of stores. */
export type PlacesByInput = Record<"items" | "files", EnqueuePlaces>;

export class EnqueuePlaces {
  /** APIs that have or want places, in the order of their turns. */
  private readonly byApi = new Map<string, ApiPlaces>();
  private taken = 0;

  /** Resolves to the function that gives the place back; undefined if `over` is aborted before there is a place. */
  take(api: string, over: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      if (over.aborted) return resolve(undefined);
      const places = this.byApi.get(api) ?? { taken: 0, waiting: new Set() };
      this.byApi.set(api, places);
      const begin: Begin = (giveBack) => {
        over.removeEventListener("abort", leave);
        resolve(giveBack);
      };
      const leave = () => {
        places.waiting.delete(begin);
        this.forget(api, places);
        resolve(undefined);
      };
      places.waiting.add(begin);
      over.addEventListener("abort", leave, { once: true });
      this.fill();
    });
  }

  /** Whether another job would get the place of a job of this API. */
  isAwaited(api: string): boolean {
    if ((this.byApi.get(api)?.waiting.size ?? 0) > 0) return true;
    if (this.taken < ENQUEUING_MAX) return false;
    for (const { taken, waiting } of this.byApi.values())
      if (waiting.size > 0 && taken < ENQUEUING_OF_AN_API_MAX) return true;
    return false;
  }

  /** Says what a job of this API waits for, and names no other API. */
  describe(api: string): string {
    const taken = this.byApi.get(api)?.taken ?? 0;
    const held =
      taken < ENQUEUING_OF_AN_API_MAX ? `${this.taken} jobs of this server` : `${taken} jobs of ${api}`;
    return `the job waits until it may be enqueued: ${held} are being enqueued, which is the limit`;
  }

  private fill(): void {
    // An API that got a place comes last again, and this loop reaches it there.
    for (const [api, places] of this.byApi) {
      if (this.taken >= ENQUEUING_MAX) return;
      const [begin] = places.waiting;
      if (begin === undefined || places.taken >= ENQUEUING_OF_AN_API_MAX) continue;
      places.waiting.delete(begin);
      places.taken++;
      this.taken++;
      this.byApi.delete(api);
      this.byApi.set(api, places);
      begin(() => this.giveBack(api, places));
    }
  }

  private giveBack(api: string, places: ApiPlaces): void {
    places.taken--;
    this.taken--;
    this.forget(api, places);
    this.fill();
  }

  private forget(api: string, { taken, waiting }: ApiPlaces): void {
    if (taken === 0 && waiting.size === 0) this.byApi.delete(api);
  }
}
