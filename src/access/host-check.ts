/**
 * Keeps web pages from driving a server on someone's laptop (docs/contract/addresses.md#host-check): on a loopback
 * listener the Host header must be a loopback name or the public URL's; a mutation must not come from a foreign Origin.
 */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

export interface HostRules {
  isLoopbackListener: boolean;
  /** `--public-url`'s host with port, if set. */
  publicHost: string | undefined;
}

export function isLoopbackAddress(host: string): boolean {
  return LOOPBACK.test(host) || host === "::1";
}

/** Whether a request with this Host header is meant for us. */
export function isOurHost(host: string | undefined, rules: HostRules): boolean {
  if (!rules.isLoopbackListener) return true;
  return host !== undefined && (LOOPBACK.test(host) || host.toLowerCase() === rules.publicHost);
}

/** Whether a Host header names this machine as only a program or a page on it does. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK.test(host);
}

/** Whether a page comes from a web server on this machine. */
export function isLoopbackOrigin(origin: string): boolean {
  return /^https?:\/\//.test(origin) && LOOPBACK.test(origin.slice(origin.indexOf("//") + 2));
}

/**
 * Whether a mutation with this Origin header may pass: our own, by one of the `hosts` that the client or a trusted proxy
 * names, or the public URL's.
 */
export function isAllowedOrigin(
  origin: string,
  hosts: readonly (string | undefined)[],
  rules: HostRules,
): boolean {
  if (!URL.canParse(origin)) return false;
  const originHost = new URL(origin).host;
  return originHost === rules.publicHost || hosts.some((host) => originHost === host?.toLowerCase());
}
