/** What a gateway's process runs (child.ts). */
import type { Socket } from "node:net";
import type { JwtOptions, JwtVerifier } from "./access/jwt.ts";
import type { StartRole } from "./child.ts";
import { CannotStart } from "./contracts/cannot-start.ts";
import { ownFaults } from "./gateway/own-faults.ts";
import { Gateway, type GatewayOptions } from "./gateway/server.ts";
import { ALL_IDLE, IDLE } from "./supervised-child.ts";

export const faults = ownFaults;

/** The descriptor behind stdin, stdout, stderr and the channel to the parent. */
const LISTENING_FD = 4;
const INSIDE_FD = 5;
const CONTROL_FD = 6;

type SentOptions = Omit<GatewayOptions, "listen" | "controlListen" | "insideListen" | "jwt"> & {
  hasControlListener: boolean;
  jwt: JwtOptions | undefined;
};

export const start: StartRole = async (options) => {
  const sent = JSON.parse(options) as SentOptions;
  const isDealt = sent.gateways > 1;
  const listenOn = (fd: number) => (isDealt ? ("parent" as const) : { fd });
  const controlListen = sent.hasControlListener ? listenOn(CONTROL_FD) : undefined;
  const gateway = await openGateway(sent.jwt, {
    ...sent,
    listen: listenOn(LISTENING_FD),
    insideListen: listenOn(INSIDE_FD),
    controlListen,
  });
  await gateway.start();
  process.on("message", (message, socket) => {
    // The client may have left on the way here.
    if (socket !== undefined) gateway.accept(socket as Socket, (message as { listener: number }).listener);
  });
  return (forGood) => gateway.stop(isDealt ? allAreIdle : async () => {}, !forGood);
};

/** The parent deals calls of user code to any gateway: also one that has nothing to do waits for the others. */
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

/** It reads the files that options name: keys of an issuer, certificates and credentials. */
async function openGateway(
  jwt: JwtOptions | undefined,
  options: Omit<GatewayOptions, "jwt">,
): Promise<Gateway> {
  try {
    return new Gateway({ ...options, jwt: jwt && (await verifierOf(jwt)) });
  } catch (error) {
    throw new CannotStart("option_unusable", (error as Error).message, error);
  }
}

/** The library for tokens is large: it is loaded where tokens are taken only. */
async function verifierOf(options: JwtOptions): Promise<JwtVerifier> {
  const { JwtVerifier } = await import("./access/jwt.ts");
  return new JwtVerifier(options);
}
