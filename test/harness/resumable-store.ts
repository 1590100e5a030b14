/**
 * Google Cloud Storage as its documentation describes uploads: resumable ones that are asked for their progress, keep
 * what they have, and check the MD5 at their end. fake-gcs-server has no progress.
 * https://cloud.google.com/storage/docs/performing-resumable-uploads
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

interface Session {
  name: string;
  content: Buffer;
  generation: number | undefined;
}

/** What happens to a request that sends bytes: the store keeps the first ones and ends the connection, or loses them. */
export type Fate = "answered" | { kept: number } | "lost answer";

export class ResumableStore {
  readonly objects = new Map<string, { content: Buffer; generation: number }>();
  readonly sessions = new Map<string, Session>();
  /** The fate of the next request that sends bytes. */
  fates: Fate[] = [];
  /** Bytes that arrived in requests of uploads. */
  received = 0;
  /** Damages a byte of the next piece on its way. */
  damages = false;
  private generations = 0;

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => this.respond(request, response, Buffer.concat(pieces)));
  };

  private respond(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const url = new URL(request.url!, "http://store");
    const id = url.searchParams.get("upload_id");
    if (request.method === "POST") this.begin(url, response);
    else if (id === null) this.object(request, url, response);
    else if (request.method === "DELETE") response.writeHead(this.sessions.delete(id) ? 499 : 404).end();
    else this.piece(this.sessions.get(id), request, response, body);
  }

  private begin(url: URL, response: ServerResponse): void {
    const id = `upload-${this.sessions.size}-of-a-secret-address`;
    this.sessions.set(id, {
      name: url.searchParams.get("name")!,
      content: Buffer.alloc(0),
      generation: undefined,
    });
    // Another host, as a proxy in front of the store would name: only the path counts.
    const location = `http://203.0.113.1:1/upload/storage/v1/b/bucket/o?uploadType=resumable&upload_id=${id}`;
    response.writeHead(200, { location }).end("{}");
  }

  private piece(
    session: Session | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): void {
    const [, first, total] = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(request.headers["content-range"]!)!;
    if (session === undefined) return void response.writeHead(404).end();
    const isQuestion = first === undefined && total === "*";
    const fate = isQuestion ? "answered" : (this.fates.shift() ?? "answered");
    this.received += body.length;
    if (first !== undefined && session.generation === undefined) {
      if (Number(first) !== session.content.length) return void response.writeHead(400).end();
      const kept = typeof fate === "object" ? body.subarray(0, fate.kept) : body;
      session.content = Buffer.concat([session.content, this.damaged(kept)]);
    }
    if (session.content.length === Number(total)) this.finish(session, request);
    if (fate !== "answered") return void request.socket.destroy();
    if (session.generation !== undefined) return this.describe(session.name, response);
    const has = session.content.length;
    response.writeHead(308, has === 0 ? {} : { range: `bytes=0-${has - 1}` }).end();
  }

  private damaged(bytes: Buffer): Buffer {
    if (!this.damages || bytes.length === 0) return bytes;
    this.damages = false;
    const damaged = Buffer.from(bytes);
    damaged[0]! ^= 1;
    return damaged;
  }

  private finish(session: Session, request: IncomingMessage): void {
    if (session.generation !== undefined) return;
    const hash = request.headers["x-goog-hash"];
    // An emulator may not check it; the response says what it has.
    if (hash === undefined) throw new Error("the last request has no hash");
    session.generation = ++this.generations;
    this.objects.set(session.name, { content: session.content, generation: session.generation });
  }

  private object(request: IncomingMessage, url: URL, response: ServerResponse): void {
    const name = decodeURIComponent(url.pathname.split("/").pop()!);
    if (request.method !== "DELETE") return this.describe(name, response);
    const wanted = url.searchParams.get("ifGenerationMatch");
    const found = this.objects.get(name);
    const isWanted = found !== undefined && (wanted === null || Number(wanted) === found.generation);
    if (isWanted) this.objects.delete(name);
    response.writeHead(isWanted ? 204 : 412).end();
  }

  private describe(name: string, response: ServerResponse): void {
    const found = this.objects.get(name);
    if (found === undefined) return void response.writeHead(404).end("{}");
    const { content, generation } = found;
    const md5Hash = createHash("md5").update(content).digest("base64");
    response.end(JSON.stringify({ generation: String(generation), size: String(content.length), md5Hash }));
  }
}
