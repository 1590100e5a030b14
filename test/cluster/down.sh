#!/bin/bash
# Ends what the other scripts started, and only that: it is found by its control groups and network namespaces. May be
# repeated. Removes $RUN.
. "$(dirname "$0")/common.sh"

kill_pods() { find "/sys/fs/cgroup/memory/quern-$1" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -9 2>/dev/null; }
kill_namespace() { [ ! -e "/var/run/netns/$1" ] || ip netns pids "$1" | xargs -r kill -9 2>/dev/null; }

for node in $NODES; do
  kill_namespace "$(namespace "$node")"
  kill_pods "$node"
done
kill_namespace $CONTROL_PLANE
sleep 0.5
for node in $NODES; do
  ip netns del "$(namespace "$node")" 2>/dev/null
  for group in /sys/fs/cgroup/*/quern-"$node"; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; done
done
ip netns del $CONTROL_PLANE 2>/dev/null
rm -rf "$RUN"
