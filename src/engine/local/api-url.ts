/** QUERN_API_URL in the environment of user code: the only variable of Quern's that user code sees. */

export const API_URL_VARIABLE = "QUERN_API_URL";
const PROXIES = /^(https?|all)_proxy$/i;
const LOOPBACK = "127.0.0.1";

/** Bypasses proxies for this address. A proxy would learn the capability in it, and could not reach it. */
export function withApiUrl(env: Record<string, string>, apiUrl: string | undefined): Record<string, string> {
  if (apiUrl === undefined) return env;
  const withUrl = { ...env, [API_URL_VARIABLE]: apiUrl };
  if (!Object.keys(env).some((name) => PROXIES.test(name))) return withUrl;
  const direct = [env.no_proxy || env.NO_PROXY, LOOPBACK].filter(Boolean).join(",");
  // "*" is valid only alone, and matches every address.
  if (direct.startsWith("*,")) return withUrl;
  return { ...withUrl, no_proxy: direct, NO_PROXY: direct };
}
