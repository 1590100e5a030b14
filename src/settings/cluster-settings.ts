/** The server's settings for workers in pods of a cluster (docs/guides/kubernetes.md). */
import { address, asGiven, oneOf, optional, podUrl } from "./setting-values.ts";

export const CLUSTER_SETTINGS = {
  engine: {
    env: "QUERN_ENGINE",
    option: "--engine <engine>",
    default: "local",
    unit: "engine",
    help: "where replicas of real-time APIs run: local (processes of this machine) or kubernetes (pods; needs --database and --worker-image)",
    parse: oneOf("local", "kubernetes"),
  },
  workerImage: {
    env: "QUERN_WORKER_IMAGE",
    option: "--worker-image <image>",
    default: "",
    unit: "image",
    help: "image of workers' pods, made by deploy/worker.Dockerfile",
    parse: optional(asGiven),
  },
  podNamespace: {
    env: "QUERN_POD_NAMESPACE",
    option: "--pod-namespace <name>",
    default: "",
    unit: "namespace",
    help: "namespace of workers' pods; the default is the server's own, or that of the kubeconfig",
    parse: optional(asGiven),
  },
  podName: {
    env: "QUERN_POD_NAME",
    option: "--pod-name <name>",
    default: "",
    unit: "name",
    help: "name of this server's pod, set by `quern export kubernetes --state`; the pod has the label quern.dev/active while this server is active",
    parse: optional(asGiven),
  },
  podListen: {
    env: "QUERN_POD_LISTEN",
    option: "--pod-listen <host:port>",
    default: "0.0.0.0:8423",
    unit: "address",
    help: "address at which workers' pods fetch their project, over TLS and with a token",
    parse: address,
  },
  podUrl: {
    env: "QUERN_POD_URL",
    option: "--pod-url <url>",
    default: "",
    unit: "URL",
    help: "URL by which pods reach --pod-listen; the default is https://quern.NAMESPACE.svc:8423, the Service of `quern export kubernetes`",
    parse: optional(podUrl),
  },
} as const;
