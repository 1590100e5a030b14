/** What `quern doctor --namespace` reads of a cluster: its version, and the pods of Quern with their reasons. */
import type { ClusterPods, FollowedCluster, PodFound } from "./cli/server/context.ts";
import { accessTrouble } from "./kubernetes/access-trouble.ts";
import { ApiClient } from "./kubernetes/api-client.ts";
import { type ClusterEvent, newestOf } from "./kubernetes/cluster-event.ts";
import { findAccess } from "./kubernetes/find-access.ts";
import { ListAndWatch } from "./kubernetes/list-and-watch.ts";
import type { Pod } from "./kubernetes/pod.ts";
import { podState } from "./kubernetes/pod-state.ts";
import { pathOf } from "./kubernetes/resources.ts";
import { kubeconfigFile, serverEnvironment } from "./settings/environment.ts";

/** Throws an error with a cure if there is no cluster to ask. */
export function openCluster(asked: ClusterPods): FollowedCluster {
  const access = findAccess(kubeconfigFile(), serverEnvironment);
  const client = new ApiClient(access);
  const path = pathOf("Pod", asked.namespace);
  const { labelSelector } = asked;
  let watch: ListAndWatch<Pod> | undefined;
  return {
    read: async () => {
      let needed = "get /version";
      try {
        const { gitVersion } = await client.get<{ gitVersion: string }>("/version");
        needed = `list pods -n ${asked.namespace}`;
        const { items } = await client.get<{ items: Pod[] }>(path, { labelSelector });
        const pods = items.map(podFound);
        needed = `list events -n ${asked.namespace}`;
        const lack = pods.length === 0 ? await whyNone(client, asked) : undefined;
        return { server: access.server, version: gitVersion, pods, lack };
      } catch (error) {
        const { detail, cure } = accessTrouble(error, access.server, needed);
        return { server: access.server, detail, cure };
      }
    },
    follow: async (onPods, onFailure) => {
      let isListed = false;
      const tell = () => {
        // A part of the pods would look like all of them.
        if (isListed) onPods([...followed.view.values()].map(podFound));
      };
      const followed = new ListAndWatch<Pod>({ client, path, labelSelector, onChange: tell, onFailure });
      watch = followed;
      await followed.start();
      await followed.listed;
      isListed = true;
      tell();
    },
    close: async () => {
      await watch?.stop();
      client.close();
    },
  };
}

function podFound(pod: Pod): PodFound {
  const { phase, trouble } = podState(pod);
  return { name: pod.metadata.name, phase, ...trouble };
}

/** Why the owner of the pods could not create any, in its own words; undefined if it did not say. */
async function whyNone(client: ApiClient, { namespace, owner }: ClusterPods): Promise<string | undefined> {
  const fieldSelector = "reason=FailedCreate";
  const { items } = await client.get<{ items: ClusterEvent[] }>(pathOf("Event", namespace), {
    fieldSelector,
  });
  return newestOf(owner, items)?.message;
}
