/** Kills a server as if its machine had lost power: the parent, gateways, the controller and all workers. */
import { killAll, processes } from "./processes.ts";
import type { TestServer } from "./server.ts";

export async function killAllOf(server: TestServer): Promise<void> {
  const exited = new Promise((resolve) => server.parent!.once("exit", resolve));
  killAll(allOf(server));
  await exited;
}

/** The ids of all processes of a server, its workers included. */
export function allOf(server: TestServer): number[] {
  const parent = server.parent!.pid!;
  const children = processes().filter(({ ppid }) => ppid === parent);
  return [parent, ...children.map(({ pid }) => pid), ...server.workers(), ...server.stages()];
}
