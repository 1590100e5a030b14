#!/bin/bash
# A network namespace for the control plane, with a bridge, and one for each node. None has a route out of the machine.
set -e
. "$(dirname "$0")/common.sh"

new_namespace() {
  ip netns add "$1"
  in_namespace "$1" ip link set lo up
  in_namespace "$1" sysctl -qw net.ipv4.ip_forward=1
}

new_namespace $CONTROL_PLANE
in_namespace $CONTROL_PLANE ip link add bridge type bridge
in_namespace $CONTROL_PLANE ip addr add $ADDRESS/24 dev bridge
in_namespace $CONTROL_PLANE ip link set bridge up
for node in $NODES; do
  number=${node#n}
  name=$(namespace "$node")
  new_namespace "$name"
  ip link add "link-$node" netns $CONTROL_PLANE type veth peer name eth0 netns "$name"
  in_namespace $CONTROL_PLANE ip link set "link-$node" master bridge up
  in_namespace "$name" ip addr add "10.250.0.1$number/24" dev eth0
  in_namespace "$name" ip link set eth0 up
  in_namespace "$name" ip route add default via $ADDRESS
  in_namespace "$name" sysctl -qw net.bridge.bridge-nf-call-iptables=1 || true
  in_namespace $CONTROL_PLANE ip route add "10.244.$number.0/24" via "10.250.0.1$number"
  for other in $NODES; do
    [ "$other" = "$node" ] || in_namespace "$name" ip route add "10.244.${other#n}.0/24" via "10.250.0.1${other#n}"
  done
done
# The tests reach Services through the first node's kube-proxy.
in_namespace $CONTROL_PLANE ip route add 10.96.0.0/16 via 10.250.0.11
