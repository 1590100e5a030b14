/**
 * Keeps web pages from driving a server on someone's laptop (decision 1.6): on a loopback listener the Host header must
 * be a loopback name or the public URL's; a mutation must not come from a foreign Origin.
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

/** Whether a mutation with this Origin header may pass: none (not a browser), our own, or the public URL's. */
export function isAllowedOrigin(
  origin: string | undefined,
  host: string | undefined,
  rules: HostRules,
): boolean {
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  const originHost = new URL(origin).host;
  return originHost === host?.toLowerCase() || originHost === rules.publicHost;
}
