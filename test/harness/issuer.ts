/** An issuer of tokens, as a real HTTP server: it publishes keys, withdraws them, and goes away. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import type { JwtOptions } from "../../src/access/jwt.ts";

const NAME = "https://issuer.example";
const KIDS = ["one", "two", "three"] as const;
export type Kid = (typeof KIDS)[number];

export class TestIssuer {
  /** The keys that it publishes now; undefined while it answers 500. */
  published: readonly Kid[] | undefined = ["one"];
  /** Answers instead of publishing keys. */
  answer: ((response: ServerResponse) => void) | undefined;
  asked = 0;
  /** One token of each key; `unnamed` does not say which key signed it. */
  readonly tokens = {} as Record<Kid, string>;
  readonly unnamed = {} as Record<Kid, string>;
  private readonly keys = {} as Record<Kid, JWK>;
  private server: Server | undefined;
  private port = 0;

  async start(): Promise<void> {
    for (const kid of KIDS) {
      const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
      this.keys[kid] = { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" };
      const sign = (header: { kid?: Kid }) =>
        new SignJWT({ scope: "admin" })
          .setProtectedHeader({ alg: "ES256", ...header })
          .setIssuer(NAME)
          .setAudience("quern")
          .setSubject(kid)
          .setExpirationTime("8h")
          .sign(privateKey);
      this.tokens[kid] = await sign({ kid });
      this.unnamed[kid] = await sign({});
    }
    await this.listen();
  }

  get options(): JwtOptions {
    const jwks = `http://127.0.0.1:${this.port}`;
    return { issuer: NAME, audience: "quern", jwks, scopesClaim: "scope" };
  }

  /** Listens at the same address each time. */
  async listen(): Promise<void> {
    const server = createServer((_, response) => this.respond(response));
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /** Nothing listens at its address any more. */
  async close(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    if (server === undefined) return;
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }

  private respond(response: ServerResponse): void {
    this.asked++;
    // No client learns only from its next request that this server was closed meanwhile.
    response.setHeader("connection", "close");
    if (this.answer !== undefined) this.answer(response);
    else if (this.published === undefined) response.writeHead(500).end();
    else response.end(JSON.stringify({ keys: this.published.map((kid) => this.keys[kid]) }));
  }
}
