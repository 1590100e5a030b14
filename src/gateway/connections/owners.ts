/**
 * Who each connection belongs to: the client's address at first, and whoever sent its last authorised request after
 * that. So a caller with a key does not share the fate of strangers behind the same address.
 */
import type { Socket } from "node:net";
import { addressOwner } from "../../base/fair/address-owner.ts";

interface Owned {
  owner: string;
  /** Whether the owner is a key, or an API whose code called; else it is an address. */
  isKnown: boolean;
  onMove: (to: string) => void;
}

const owned = new WeakMap<Socket, Owned>();

/** Returns the owner; `onMove` is called with each new one. */
export function followOwner(socket: Socket, onMove: (to: string) => void): string {
  const owner = addressOwner(socket.remoteAddress);
  owned.set(socket, { owner, isKnown: false, onMove });
  return owner;
}

/** A request of `owner` was authorised. On the hot path: the owner is nearly always the same as before. */
export function setOwner(socket: Socket, owner: string): void {
  const known = owned.get(socket);
  if (known === undefined || known.owner === owner) return;
  known.owner = owner;
  known.isKnown = true;
  known.onMove(owner);
}

export function ownerOf(socket: Socket): string {
  return owned.get(socket)?.owner ?? addressOwner(socket.remoteAddress);
}

/** Whether a request of the connection was authorised. */
export function hasKey(socket: Socket): boolean {
  return owned.get(socket)?.isKnown === true;
}
