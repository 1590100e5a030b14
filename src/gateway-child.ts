/** Runs in a gateway's process (child.ts). */
import type { Socket } from "node:net";
import { type HostRules, isLoopbackAddress } from "./access/host-check.ts";
import type { JwtOptions, JwtVerifier } from "./access/jwt.ts";
import { setLogLevel } from "./base/log.ts";
import type { StartRole } from "./child.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { accessLogFile, controllerSocket, internalSocket, routesFile } from "./contracts/data-layout.ts";
import { isStandbyMessage } from "./contracts/messages.ts";
import { ownFaults } from "./gateway/answers/own-faults.ts";
import { Gateway, type GatewayOptions } from "./gateway/server.ts";
import { ALL_IDLE, IDLE, STOPS_SOON } from "./parent/supervised-child.ts";
import { type ChildOptions, readChildOptions } from "./settings/child-options.ts";

export const faults = ownFaults;

/** The first descriptor after stdin, stdout, stderr and the channel to the parent. */
const LISTENING_FD = 4;
const INSIDE_FD = 5;
const CONTROL_FD = 6;

export const start: StartRole = async (message) => {
  const options = readChildOptions(message);
  setLogLevel(options.logLevel);
  const isDealt = options.gateways > 1;
  const listenOn = (fd: number) => (isDealt ? ("parent" as const) : { fd });
  const gateway = await openGateway(options, {
    listen: listenOn(LISTENING_FD),
    insideListen: listenOn(INSIDE_FD),
    controlListen: options.controlListen === undefined ? undefined : listenOn(CONTROL_FD),
  });
  await gateway.start();
  process.on("message", (message, socket) => {
    if (message === STOPS_SOON) gateway.stopSoon();
    if (isStandbyMessage(message)) gateway.router.stand(message.standby);
    // The client may have disconnected during the transfer.
    if (socket !== undefined) gateway.accept(socket as Socket, (message as { listener: number }).listener);
  });
  return (forGood) => gateway.stop(isDealt ? allAreIdle : async () => {}, !forGood);
};

/**
 * Waits for the other gateways even if this one has no requests: the parent deals calls of user code to any gateway.
 */
function allAreIdle(): Promise<void> {
  return new Promise((resolve) => {
    process.once("disconnect", resolve);
    process.on("message", (message) => {
      if (message === ALL_IDLE) resolve();
    });
    if (process.connected) process.send!(IDLE, () => {});
    else resolve();
  });
}

type Sockets = Pick<GatewayOptions, "listen" | "insideListen" | "controlListen">;

/** Opens the gateway, and reads the files that options name: keys of an issuer, certificates and credentials. */
async function openGateway(options: ChildOptions, sockets: Sockets): Promise<Gateway> {
  const { dataDir, runtimeDir, apiPort, mainUrl, tls, publicUrl, trustedProxies, jwt, sigv4 } = options;
  const { gateways, maxBody: maxBodyBytes, listen, controlListen } = options;
  try {
    return new Gateway({
      ...{ ...sockets, apiPort, mainUrl, tls, publicUrl, trustedProxies, sigv4, gateways, maxBodyBytes },
      controllerSocket: controllerSocket(runtimeDir),
      internalSocket: internalSocket(runtimeDir),
      routesFile: routesFile(dataDir),
      isShared: options.state !== undefined,
      accessLog: options.accessLog ? accessLogFile(dataDir) : undefined,
      rules: { main: hostRules(listen, publicUrl), control: hostRules(controlListen ?? listen, publicUrl) },
      jwt: jwt && (await verifierOf(jwt)),
    });
  } catch (error) {
    throw new CannotStart("option_unusable", (error as Error).message, error);
  }
}

function hostRules({ host }: { host: string }, publicUrl: string | undefined): HostRules {
  return {
    isLoopbackListener: isLoopbackAddress(host),
    publicHost: publicUrl === undefined ? undefined : new URL(publicUrl).host,
  };
}

/** The library for tokens is large, so it is loaded only if tokens are accepted. */
async function verifierOf(options: JwtOptions): Promise<JwtVerifier> {
  const { JwtVerifier } = await import("./access/jwt.ts");
  return new JwtVerifier(options);
}
