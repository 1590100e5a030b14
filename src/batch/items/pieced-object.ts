/** Several objects that are read as one. A position is in the last object that begins at or before it. */
import { ObjectChanged, type ObjectStore, type OpenObject } from "../../object-store/object-store.ts";
import { ITEMS_ETAG, ITEMS_PATH } from "../records/items-file.ts";
import type { ItemPiece } from "./item-pieces.ts";

export interface PieceSource {
  store: ObjectStore;
  prefix: string;
  /** All of them, in order. */
  load: () => Promise<ItemPiece[]>;
}

export class PiecedObject implements OpenObject {
  readonly path = ITEMS_PATH;
  readonly etag = ITEMS_ETAG;
  private readonly source: PieceSource;
  private pieces: ItemPiece[];
  private opened: { name: string; object: OpenObject } | undefined;

  constructor(source: PieceSource, pieces: ItemPiece[]) {
    this.source = source;
    this.pieces = pieces;
  }

  get bytes(): number {
    const last = this.pieces.at(-1);
    return last === undefined ? 0 : last.start + last.bytes;
  }

  async read(into: Buffer, offset: number, position: number, length: number): Promise<number> {
    // Some may have been added since.
    if (position >= this.bytes) this.pieces = await this.source.load();
    const at = lastBefore(this.pieces, position);
    const piece = this.pieces[at];
    if (piece === undefined) return 0;
    // An earlier one may have more than was committed: what follows is in the next one.
    const end = this.pieces[at + 1]?.start ?? piece.start + piece.bytes;
    const most = Math.min(length, end - position);
    if (most <= 0) return 0;
    const object = await this.open(piece);
    const bytes = await object.read(into, offset, position - piece.start, most);
    if (bytes === 0) throw new ObjectChanged(this.source.prefix + piece.name);
    return bytes;
  }

  async close(): Promise<void> {
    const { opened } = this;
    this.opened = undefined;
    await opened?.object.close();
  }

  private async open({ name }: ItemPiece): Promise<OpenObject> {
    if (this.opened?.name === name) return this.opened.object;
    await this.close();
    const object = await this.source.store.open(this.source.prefix + name);
    this.opened = { name, object };
    return object;
  }
}

/** The index of the last piece that begins at or before `position`; -1 if there is none. */
export function lastBefore(pieces: readonly Pick<ItemPiece, "start">[], position: number): number {
  let [low, high] = [0, pieces.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle]!.start <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
