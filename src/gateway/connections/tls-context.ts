/** What a TLS listener offers its clients. None of it lets a client cause work that no turn of the event loop bounds. */
import { constants } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext } from "node:tls";

export interface TlsFiles {
  cert: string;
  key: string;
}

/**
 * Without ciphers whose client encrypts the key for the server: decrypting it costs as much as a signature, and it is not
 * bounded. All others have forward secrecy, and every client since TLS 1.2 has them.
 */
const CIPHERS = `${DEFAULT_CIPHERS}:!kRSA`;
/**
 * Every client has one of these groups. OpenSSL also offers finite fields of up to 8,192 bits by default: a handshake
 * with one takes 100 ms, fifty times as long.
 */
const GROUPS = "X25519:P-256:P-384";
const POST_QUANTUM_GROUP = "X25519MLKEM768";

/**
 * Without renegotiation in TLS 1.2: it is another handshake on an open connection, so its signature would have no turn.
 * No HTTP client needs it. Throws if a file cannot be read.
 */
export function tlsContext({ cert, key }: TlsFiles): SecureContext {
  return createSecureContext({
    cert: readFileSync(cert),
    key: readFileSync(key),
    ciphers: CIPHERS,
    honorCipherOrder: true,
    ecdhCurve: hasPostQuantum() ? `${POST_QUANTUM_GROUP}:${GROUPS}` : GROUPS,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  });
}

/** OpenSSL has it from version 3.5, which is in Node 24. */
function hasPostQuantum(): boolean {
  try {
    createSecureContext({ ecdhCurve: POST_QUANTUM_GROUP });
    return true;
  } catch {
    return false;
  }
}
