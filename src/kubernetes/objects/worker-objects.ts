/** What the objects of real-time APIs and of jobs have in common: the pod of a worker, and its Secret. Pure. */
import { apiVersionOf, type Kind } from "../resources.ts";
import { spreadOf, tolerationsOf } from "./placement.ts";
import { LEAVE_SECONDS, workerContainer } from "./worker-container.ts";
import type { PodTemplate, WorkerSecret } from "./worker-pods.ts";

export interface AppliedObject {
  apiVersion: string;
  kind: Kind;
  metadata: { name: string; namespace: string; labels: Readonly<Record<string, string>> };
}

/** The user of the container. */
const USER = 1000;
/** From the end of the launcher's time to SIGKILL. */
const SPARE_SECONDS = 5;

export function applied(kind: Kind, metadata: AppliedObject["metadata"]): AppliedObject {
  return { apiVersion: apiVersionOf(kind), kind, metadata };
}

/** The content of a worker's Secret. */
export function filesOf({ token, cert, key, authority }: WorkerSecret): object {
  const files = { token, "tls.crt": cert, "tls.key": key, "ca.crt": authority };
  const data = Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString("base64")]);
  return { type: "Opaque", data: Object.fromEntries(data) };
}

/** Whose pods they are: by which labels they spread over the nodes, and which Secret they see. */
interface Owner {
  labels: Readonly<Record<string, string>>;
  secretName: string;
  isOfJob: boolean;
}

export function podSpec(pods: PodTemplate, { labels, secretName, isOfJob }: Owner): object {
  const { nodeSelector, tolerations, serviceAccount, graceSeconds } = pods;
  const leaveSeconds = isOfJob ? 0 : LEAVE_SECONDS;
  return {
    ...(serviceAccount === undefined ? {} : { serviceAccountName: serviceAccount }),
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    // User code gets no right in the cluster, unless somebody gives it an account for that.
    automountServiceAccountToken: serviceAccount !== undefined,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: leaveSeconds + graceSeconds + SPARE_SECONDS,
    tolerations: tolerationsOf(tolerations),
    topologySpreadConstraints: spreadOf(labels),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      seccompProfile: { type: "RuntimeDefault" },
    },
    containers: [workerContainer(pods, { isOfJob })],
    volumes: [
      { name: "run", emptyDir: {} },
      { name: "tmp", emptyDir: {} },
      { name: "secrets", secret: { secretName, defaultMode: 0o440 } },
    ],
  };
}
