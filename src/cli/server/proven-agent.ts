/**
 * Connections to the server of a data directory. Each connection proves that it leads there before a request uses it.
 * After a server was killed, any local program may take its port (contracts/server-proof.ts).
 */
import { Agent, type ClientRequestArgs } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { isProof, newNonce, PROOF_PATH } from "../../contracts/server-proof.ts";

/** A gateway that starts or is replaced responds within seconds. Connections wait for it meanwhile. */
const PROOF_MS = 30_000;
const RETRY_MS = 50;
/** The proof has some 400 bytes. */
const ANSWER_BYTES_MAX = 4096;

const VERSION = "HTTP/1.1 ";

export class NotProven extends Error {}

type OnConnection = (error: Error | null, socket: Duplex) => void;

export class ProvenAgent extends Agent {
  private readonly tokenSha256: string;
  private readonly isTls: boolean;

  constructor(tokenSha256: string, isTls: boolean) {
    super({ keepAlive: true });
    this.tokenSha256 = tokenSha256;
    this.isTls = isTls;
    // `request` compares these with the URL.
    Object.assign(this, { protocol: isTls ? "https:" : "http:", defaultPort: isTls ? 443 : 80 });
  }

  override createConnection(options: ClientRequestArgs, done?: OnConnection): undefined {
    this.connect(String(options.host), Number(options.port)).then(
      (socket) => done!(null, socket),
      (error: Error) => done!(error, undefined as never),
    );
    return undefined;
  }

  private async connect(host: string, port: number): Promise<Socket> {
    for (const deadline = performance.now() + PROOF_MS; ; await pause(RETRY_MS)) {
      const socket = await opened(this.isTls, host, port);
      const nonce = newNonce();
      const { status, body } = await ask(socket, `${PROOF_PATH}?nonce=${nonce}`).catch((error: Error) => {
        socket.destroy();
        throw new NotProven(error.message);
      });
      const { remoteAddress, remotePort } = socket;
      const challenge = { tokenSha256: this.tokenSha256, nonce, host: remoteAddress, port: remotePort };
      if (status === 200 && isProof(proofIn(body), challenge)) return socket;
      socket.destroy();
      // The gateway has just started.
      if (status === 503 && performance.now() < deadline) continue;
      throw new NotProven(status === 200 ? "its proof is wrong" : `it answered ${status}`);
    }
  }
}

function opened(isTls: boolean, host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = isTls ? connectTls({ host, port }) : connect({ host, port });
    socket.once("error", reject).once(isTls ? "secureConnect" : "connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

/**
 * Sends one request without the HTTP client, so that the agent can use the socket afterwards. Rejects if the response
 * does not look like one of Quern's.
 */
function ask(socket: Socket, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const end = (error: Error | undefined) => {
      clearTimeout(timer);
      socket.off("data", onData).off("error", end).off("close", onClose);
      if (error !== undefined) reject(error);
    };
    const onClose = () => end(new Error("it closed the connection"));
    const onData = (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const answer = parse(text);
      if (answer !== undefined) {
        end(undefined);
        resolve(answer);
      } else if (text.length > ANSWER_BYTES_MAX || !text.startsWith(VERSION.slice(0, text.length)))
        end(new Error("it does not respond in HTTP/1.1 like a Quern server"));
    };
    const timer = setTimeout(
      () => end(new Error(`it did not respond within ${PROOF_MS / 1000} s`)),
      PROOF_MS,
    );
    socket.on("data", onData).on("error", end).on("close", onClose);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  });
}

/** Parses a response; undefined until it is complete. For any status but 200, the status is enough. */
function parse(text: string): { status: number; body: string } | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [head, body] = [text.slice(0, headEnd), text.slice(headEnd + 4)];
  const status = Number(head.slice(VERSION.length, VERSION.length + 3));
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return status !== 200 || body.length >= length ? { status, body } : undefined;
}

function proofIn(body: string): string {
  try {
    return String((JSON.parse(body) as { proof: unknown }).proof);
  } catch {
    return "";
  }
}
