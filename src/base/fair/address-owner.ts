/** Who an address counts as, where addresses have shares. */
import { isIPv6 } from "node:net";

/** The client's address. One host may have all addresses of an IPv6 /64 network, so they count as one. */
export function addressOwner(address: string | undefined): string {
  const text = (address ?? "").replace(/^::ffff:(?=\d+\.)/, "");
  if (!isIPv6(text)) return text;
  const [before, after] = text
    .replace(/%.*$/, "")
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== "")) as [string[], string[] | undefined];
  const zeros = after === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(Math.max(zeros, 0)).fill("0"), ...(after ?? [])];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
