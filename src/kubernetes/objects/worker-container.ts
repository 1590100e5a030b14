/** The container of a worker's pod: the launcher, which starts the worker (docs/pods.md). Pure. */
import { HEALTH_PORT, type PodTemplate, WORKER_PORT } from "./worker-pods.ts";

/** Where the pod's Secret is. */
const SECRETS = "/var/run/quern";
/** The pod's own directory. It outlives the container. */
const RUN = "/quern";
/** Gateways learn in this time that a pod goes, before its worker stops to take requests. */
export const LEAVE_SECONDS = 3;

// Not `sleep`: an image may lack it, but no image lacks Python.
const STAYS_A_WHILE = {
  preStop: { exec: { command: ["python3", "-c", `import time; time.sleep(${LEAVE_SECONDS})`] } },
};

/** `own`: what the container of a replica, or of a job, has besides. */
export function workerContainer(pods: PodTemplate, own: { isOfJob: boolean }): object {
  return {
    name: "worker",
    image: pods.image,
    imagePullPolicy: "IfNotPresent",
    env: environment(pods, own.isOfJob),
    ...(pods.secrets.length === 0 ? {} : { envFrom: pods.secrets.map((name) => ({ secretRef: { name } })) }),
    ports: [
      { name: "worker", containerPort: WORKER_PORT, protocol: "TCP" },
      { name: "health", containerPort: HEALTH_PORT, protocol: "TCP" },
    ],
    readinessProbe: { ...probe("/readyz"), periodSeconds: 1, timeoutSeconds: 2, failureThreshold: 3 },
    livenessProbe: { ...probe("/livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    ...(own.isOfJob ? {} : { lifecycle: STAYS_A_WHILE }),
    resources: resources(pods),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "run", mountPath: RUN },
      { name: "tmp", mountPath: "/tmp" },
      { name: "secrets", mountPath: SECRETS, readOnly: true },
    ],
  };
}

/** Kubernetes replaces `$(NAME)` in a value, unless the dollar is doubled. */
function environment(
  { env, pythonPath, projectUrl, graceSeconds }: PodTemplate,
  isOfJob: boolean,
): readonly object[] {
  const own = {
    QUERN_PROJECT_URL: projectUrl,
    QUERN_RUN: RUN,
    QUERN_SECRETS: SECRETS,
    QUERN_GRACE: String(graceSeconds),
    ...(pythonPath === undefined ? {} : { QUERN_PYTHON_PATH: pythonPath }),
    ...(isOfJob ? { QUERN_ENDS_WITH_WORKER: "true" } : {}),
  };
  return Object.entries({ ...env, ...own }).map(([name, value]) => {
    return { name, value: value.replaceAll("$", "$$$$") };
  });
}

/** CPUs have no limit: nobody gains if one that is free stays so. */
function resources({ cpuMillis, memoryBytes, gpus }: PodTemplate): object {
  const memory = memoryBytes === undefined ? {} : { memory: String(memoryBytes) };
  const gpu = gpus === 0 ? {} : { "nvidia.com/gpu": String(gpus) };
  return { requests: { cpu: `${cpuMillis}m`, ...memory, ...gpu }, limits: { ...memory, ...gpu } };
}

function probe(path: string): object {
  return { httpGet: { path, port: "health", scheme: "HTTP" } };
}
