/** The fields of a pod that Quern reads (Kubernetes's core/v1). The API server leaves out what is empty. */
import type { KubernetesObject } from "./resources.ts";

export interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
  status?: {
    phase?: string;
    /** Why the kubelet refused or ended the whole pod, such as `Evicted`. */
    reason?: string;
    message?: string;
    podIP?: string;
    conditions?: readonly PodCondition[];
    initContainerStatuses?: readonly ContainerStatus[];
    containerStatuses?: readonly ContainerStatus[];
  };
}

export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

export interface ContainerStatus {
  name: string;
  ready: boolean;
  restartCount: number;
  state?: ContainerState;
  /** How the run before this one ended. */
  lastState?: ContainerState;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: object;
  terminated?: ContainerEnd;
}

export interface ContainerEnd {
  exitCode: number;
  reason?: string;
  message?: string;
}
