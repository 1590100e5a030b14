/**
 * Starts a server (`quern up`): checks that it may listen, opens the listening sockets, and runs the parent. The sockets
 * are shared through the kernel. So connections wait in its queue, and are not refused, while a gateway is replaced
 * (docs/decisions/0002-listening-socket.md).
 */

import { rmSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { isLoopbackAddress } from "./access/host-check.ts";
import { whenDiskHasSpace } from "./base/disk-full.ts";
import { routesFile } from "./contracts/data-layout.ts";
import { readInstance } from "./database/instance.ts";
import { claimDelegatedCgroup } from "./engine/delegated-cgroup.ts";
import { outliveReaders, say, tellFrom, tellSoon } from "./observe/words.ts";
import { hasAnyKey } from "./offline-keys.ts";
import { forgetApiPort } from "./parent/api-port.ts";
import {
  fromHere,
  openListeningSockets,
  type PassedSockets,
  takePassedSockets,
} from "./parent/listening-sockets.ts";
import { NOTIFY_VARIABLES, Systemd } from "./parent/notify-systemd.ts";
import { diskWait, Parent } from "./parent/parent.ts";
import { LISTEN_VARIABLES, meantFor, passedFds } from "./parent/passed-sockets.ts";
import { type RunOptions, writeChildOptions } from "./settings/child-options.ts";
import { takeVariables } from "./settings/environment.ts";
import { runtimeDirectory } from "./settings/runtime-directory.ts";
import type { ServerOptions } from "./settings/server-options.ts";

/** Runs until SIGTERM or SIGINT. Resolves to the exit code. */
export async function up(given: ServerOptions): Promise<number> {
  outliveReaders();
  tellFrom(given.logLevel);
  const { dataDir } = given;
  const systemd = new Systemd(takeVariables(NOTIFY_VARIABLES), given.python);
  const passed = passedSockets();
  const options = listeningOn(passed, given);
  const wait = diskWait(new AbortController().signal);
  const refused = await whenDiskHasSpace(() => openHost(options), wait);
  if (refused !== undefined) {
    say(
      `quern: refusing to listen on ${refused}: anyone who reaches it could use your APIs.\n` +
        `  Create a key first${options.database === undefined ? "" : " (with the same QUERN_DATABASE)"}: quern keys create --scope predict --data-dir ${dataDir}\n` +
        "  Or accept the risk with --insecure-no-auth.",
    );
    return 1;
  }
  forgetOriginals(dataDir);
  const sockets = await openListeningSockets(given, passed);
  const run: RunOptions = {
    runtimeDir: await whenDiskHasSpace(async () => runtimeDirectory(dataDir), wait),
    machine: machine(),
    // Before any child starts: children must be in the same group as the parent.
    delegatedCgroup: claimDelegatedCgroup(options.python),
    parentPid: process.pid,
    apiPort: sockets.apiPort,
    mainUrl: fromHere(sockets.mainUrl),
  };
  const parent = new Parent(sockets, {
    ...{ dataDir, gateways: options.gateways, drainDelayMs: options.drainDelay * 1_000, systemd },
    program: fileURLToPath(new URL("./bin.js", import.meta.url)),
    firstOptions: writeChildOptions(options, run),
    // A test kills only the first controller, and an action of the first start is not repeated.
    options: writeChildOptions({ ...options, killAt: "", continueJobs: false }, run),
  });
  return parent.run();
}

/** The sockets that systemd passes to this process. Children must not take them for theirs. */
function passedSockets(): PassedSockets {
  const variables = takeVariables(LISTEN_VARIABLES);
  const other = meantFor(variables, process.pid);
  if (other !== undefined)
    tellSoon(
      "warn",
      { event: "listen_fds_ignored" },
      `LISTEN_FDS is ignored: it is meant for ${other} (LISTEN_PID), and this is process ${process.pid}; start \`quern up\` without a shell, or with exec`,
    );
  return takePassedSockets(passedFds(variables, process.pid));
}

/** The options with the addresses of passed sockets: who may call depends on where the server really listens. */
function listeningOn({ main, control }: PassedSockets, options: ServerOptions): ServerOptions {
  return {
    ...options,
    listen: main?.address ?? options.listen,
    controlListen: control?.address ?? options.controlListen,
  };
}

/** The host of a listener that other machines reach, if nothing protects it. */
async function openHost(options: ServerOptions): Promise<string | undefined> {
  const { listen, controlListen, dataDir } = options;
  const hosts = [listen.host, ...(controlListen === undefined ? [] : [controlListen.host])];
  const open = hosts.find((host) => !isLoopbackAddress(host));
  if (open === undefined || options.insecureNoAuth || options.jwt !== undefined) return undefined;
  return (await hasAnyKey(dataDir, options.database)) ? undefined : open;
}

/**
 * A gateway starts from the stored routes. In a copied directory they lead to the original's replicas, and the stored
 * port is the original's too.
 */
function forgetOriginals(dataDir: string): void {
  if (readInstance(dataDir)?.isCopy === false) return;
  rmSync(routesFile(dataDir), { force: true });
  forgetApiPort(dataDir);
}

function machine(): RunOptions["machine"] {
  const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return { cpuMillis: availableParallelism() * 1000, memoryBytes };
}
