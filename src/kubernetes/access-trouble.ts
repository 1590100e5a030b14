/** Why the API server of a cluster does not give what was asked, and what to do. Pure. */
import { ApiError } from "./api-error.ts";

export interface AccessTrouble {
  detail: string;
  cure: string;
}

/** Codes of Node for certificates that do not fit. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/;

/** `needed`: the right that the request needs, such as `list pods`. */
export function accessTrouble(error: unknown, server: string, needed: string): AccessTrouble {
  if (error instanceof ApiError) return refusal(error, server, needed);
  const { message, code = "" } = error as NodeJS.ErrnoException;
  if (CERTIFICATE.test(code))
    return {
      detail: `${server} has a certificate that is not trusted: ${message}`,
      cure: "correct certificate-authority in the kubeconfig",
    };
  return {
    detail: `${server} cannot be reached: ${message || code}`,
    cure: "check the current context (`kubectl config view --minify`), and that this machine reaches the cluster",
  };
}

function refusal({ status, message }: ApiError, server: string, needed: string): AccessTrouble {
  if (status === 401)
    return {
      detail: `${server} does not accept the credentials: ${message}`,
      cure: "renew the token in the kubeconfig (`kubectl create token NAME`)",
    };
  if (status === 403)
    return {
      detail: message,
      cure: `ask who runs the cluster for a Role that may ${needed} (\`kubectl auth can-i ${needed}\`)`,
    };
  return { detail: `${server}: ${message}`, cure: "try again; if it stays so, ask who runs the cluster" };
}
