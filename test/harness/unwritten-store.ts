/** The methods of a store to which the code under test writes nothing. */
import type { ObjectStore } from "../../src/object-store/object-store.ts";

const refuse = () => Promise.reject(new Error("is not written"));

export const UNWRITTEN: Pick<ObjectStore, "put" | "create" | "remove" | "removeUnfinished"> = {
  put: refuse,
  create: refuse,
  remove: refuse,
  removeUnfinished: refuse,
};
