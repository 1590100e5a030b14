/** Project archives as an attacker makes them: entry by entry. */
import { gzipSync } from "node:zlib";
import { Header } from "tar";

export interface Entry {
  path: string;
  body?: string | Buffer;
  /** The size in the header, if it differs from that of the body. */
  size?: number;
  mode?: number;
  type?: string;
  linkpath?: string;
}

const BLOCK = 512;

export function tarEntry({ path, body = "", size, mode = 0o644, type = "File", linkpath }: Entry): Buffer {
  const content = Buffer.from(body);
  const head = Buffer.alloc(BLOCK);
  const fields = { path, mode, uid: 0, gid: 0, mtime: new Date(0), linkpath };
  new Header({ ...fields, size: size ?? content.length, type: type as never }).encode(head);
  return Buffer.concat([head, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}

/** An entry with a path of any length, as pax has it. */
export function longEntry(path: string, body = ""): Buffer {
  const record = ` path=${path}\n`;
  let length = 0;
  while (Buffer.byteLength(`${length}${record}`) !== length) length = Buffer.byteLength(`${length}${record}`);
  const pax = tarEntry({ path: "PaxHeader", type: "ExtendedHeader", body: `${length}${record}` });
  return Buffer.concat([pax, tarEntry({ path: "long", body })]);
}

export const tarEnd = Buffer.alloc(2 * BLOCK);

export function archiveOf(...entries: (Entry | Buffer)[]): Buffer {
  const parts = entries.map((entry) => (Buffer.isBuffer(entry) ? entry : tarEntry(entry)));
  return gzipSync(Buffer.concat([...parts, tarEnd]));
}
