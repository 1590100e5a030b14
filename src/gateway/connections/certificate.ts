/** The certificate of a TLS listener. A renewed one is used without a restart. */
import { statSync } from "node:fs";
import type { SecureContext } from "node:tls";
import { processLog } from "../../base/log.ts";
import { every } from "../../base/loop/pulse.ts";
import { type TlsFiles, tlsContext } from "./tls-context.ts";

const POLL_MS = 1_000;

export class Certificate {
  /** For new connections. */
  context: SecureContext;
  private readonly files: TlsFiles;
  private end = () => {};

  /** Throws if a file cannot be read. */
  constructor(files: TlsFiles) {
    this.files = files;
    this.context = tlsContext(files);
  }

  /** If a renewed certificate cannot be read, this is reported and the old one stays. */
  follow(): void {
    let known = changedAt(this.files);
    this.end = every(POLL_MS, "the certificate", () => {
      const now = changedAt(this.files);
      if (now === known) return;
      known = now;
      try {
        this.context = tlsContext(this.files);
      } catch (error) {
        const { message } = error as Error;
        processLog().error(
          { event: "certificate_unusable" },
          `the new certificate cannot be used: ${message}`,
        );
      }
    });
  }

  stop(): void {
    this.end();
  }
}

/** Empty while a file is being replaced. */
function changedAt({ cert, key }: TlsFiles): string {
  try {
    return [cert, key].map((file) => `${statSync(file).mtimeMs} ${statSync(file).ino}`).join();
  } catch {
    return "";
  }
}
