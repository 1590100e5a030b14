/** Kills a server as if its machine had lost power: the parent, gateways, the controller and all workers. */
import { killAll, processes } from "./processes.ts";
import type { TestServer } from "./server.ts";

export async function killAllOf(server: TestServer): Promise<void> {
  const parent = server.parent!;
  const exited = new Promise((resolve) => parent.once("exit", resolve));
  const children = processes().filter(({ ppid }) => ppid === parent.pid);
  killAll([parent.pid!, ...children.map(({ pid }) => pid), ...server.workers(), ...server.stages()]);
  await exited;
}
