/**
 * Keeps web pages from controlling a server on someone's laptop (docs/contract/addresses.md#host-check). On a loopback
 * listener the Host header must be a loopback name or the public URL's. A mutation must not come from a foreign Origin.
 */
/** A scheme, the longest name of a host, and a port. Converting a longer name takes milliseconds (IDNA). */
const ORIGIN_LENGTH_MAX = 300;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

export interface HostRules {
  isLoopbackListener: boolean;
  /** The host of `--public-url` with its port, if set. */
  publicHost: string | undefined;
}

export function isLoopbackAddress(host: string): boolean {
  return LOOPBACK.test(host) || host === "::1";
}

/** Whether a request with this Host header is meant for this server. */
export function isOurHost(host: string | undefined, rules: HostRules): boolean {
  if (!rules.isLoopbackListener) return true;
  return host !== undefined && (LOOPBACK.test(host) || host.toLowerCase() === rules.publicHost);
}

/** Whether a Host header is a loopback name, which only programs and pages on this machine use. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK.test(host);
}

/** Whether a page comes from a web server on this machine. */
export function isLoopbackOrigin(origin: string): boolean {
  return /^https?:\/\//.test(origin) && LOOPBACK.test(origin.slice(origin.indexOf("//") + 2));
}

/**
 * Whether a mutation with this Origin header may pass. The origin must be one of `hosts`, which the client or a trusted
 * proxy names, or the public URL's.
 */
export function isAllowedOrigin(
  origin: string,
  hosts: readonly (string | undefined)[],
  rules: HostRules,
): boolean {
  if (origin.length > ORIGIN_LENGTH_MAX || !URL.canParse(origin)) return false;
  const originHost = new URL(origin).host;
  return originHost === rules.publicHost || hosts.some((host) => originHost === host?.toLowerCase());
}
