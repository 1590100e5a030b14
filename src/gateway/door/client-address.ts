/**
 * Determines who the client is, and by which address it reached us (docs/contract/addresses.md#trusted-proxies).
 * `X-Forwarded-*` headers are believed from trusted proxies only. From anyone else they show that the request did not
 * begin on this machine.
 */
import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import { isLoopbackHost } from "../../access/host-check.ts";

export interface AddressRules {
  publicUrl: string | undefined;
  /** Addresses, or networks such as `10.0.0.0/8`. */
  trustedProxies: readonly string[];
  isTls: boolean;
}

/** A proxy may pass on what its client sent: nothing else is taken for a path, or for a host. */
const PREFIX = /^(?:\/[\w.~%@+-]+)*$/;
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

export class ClientAddress {
  private readonly rules: AddressRules;
  private readonly trusted = new BlockList();

  constructor(rules: AddressRules) {
    this.rules = rules;
    for (const proxy of rules.trustedProxies) addNetwork(this.trusted, proxy);
  }

  /** The address by which the client reached us, used for addresses in responses. */
  baseUrl(request: IncomingMessage): string {
    return this.rules.publicUrl ?? this.reachedUrl(request);
  }

  /** `baseUrl`, and the address without `--public-url` if that is set: it does not lead to every listener. */
  urls(request: IncomingMessage): { baseUrl: string; reachedUrl?: string } {
    const baseUrl = this.baseUrl(request);
    return this.rules.publicUrl === undefined
      ? { baseUrl }
      : { baseUrl, reachedUrl: this.reachedUrl(request) };
  }

  /** Where the dashboard is for this client, without a slash at the end: the path of a proxy's prefix. */
  prefix(request: IncomingMessage, isControl: boolean): string {
    const url = isControl || this.isLocal(request) ? this.reachedUrl(request) : this.baseUrl(request);
    return /^\w+:\/\/[^/]+(\/.*)?$/.exec(url)?.[1] ?? "";
  }

  private reachedUrl(request: IncomingMessage): string {
    const { isTls } = this.rules;
    const told = this.forwarded(request, "x-forwarded-proto")?.toLowerCase();
    const protocol = told === "http" || told === "https" ? told : isTls ? "https" : "http";
    const given = this.forwarded(request, "x-forwarded-prefix")?.replace(/\/+$/, "") ?? "";
    const prefix = PREFIX.test(given) ? given : "";
    return `${protocol}://${this.host(request) ?? "localhost"}${prefix}`;
  }

  /** The host that the client asked for. */
  host(request: IncomingMessage): string | undefined {
    const told = this.forwarded(request, "x-forwarded-host");
    return told !== undefined && HOST.test(told) ? told : request.headers.host;
  }

  private forwarded(request: IncomingMessage, name: string): string | undefined {
    return this.isTrusted(request) ? firstOf(request.headers[name]) : undefined;
  }

  /**
   * Whether the request began on this machine. False if a proxy on this machine forwarded it. Also false if it came
   * from a web page whose host name was pointed at this machine.
   */
  isLocal({ socket, headers }: IncomingMessage): boolean {
    const isForwarded = ["x-forwarded-for", "forwarded", "via", "x-real-ip"].some(
      (name) => headers[name] !== undefined,
    );
    return !isForwarded && isLoopback(socket.remoteAddress) && isLoopbackHost(headers.host);
  }

  private isTrusted({ socket }: IncomingMessage): boolean {
    const address = plain(socket.remoteAddress);
    return isIP(address) !== 0 && this.trusted.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  }
}

/** Throws if `text` is neither an address nor a network. */
function addNetwork(list: BlockList, text: string): void {
  const [address, bits] = text.split("/") as [string, string | undefined];
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (isIP(address) === 0) throw new Error(`"${text}" is not an IP address or a network such as 10.0.0.0/8`);
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(bits), family);
}

function isLoopback(address: string | undefined): boolean {
  const text = plain(address);
  return text === "::1" || text.startsWith("127.");
}

/** A socket for both families writes an IPv4 address as IPv6. */
function plain(address: string | undefined): string {
  return (address ?? "").replace(/^::ffff:/, "");
}

function firstOf(header: string | string[] | undefined): string | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.split(",")[0]?.trim();
  return text === "" ? undefined : text;
}
