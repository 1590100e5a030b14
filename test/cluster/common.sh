# What all scripts of the test's cluster share. The caller sets:
#   BIN     directory of the programs of Kubernetes
#   RUN     directory of everything that the cluster writes
#   IMAGES  archives of images that each node gets
# Everything runs in network namespaces without a route out of the machine: the control plane in one, each node in its own.
: "${BIN:?}" "${RUN:?}"
NODES="n1 n2"
CONTROL_PLANE=quern-cp
ADDRESS=10.250.0.1
PKI=$RUN/pki
LOGS=$RUN/logs

# The network namespace of a node.
namespace() { echo "quern-$1"; }

# in_namespace NAME COMMAND...: not `ip netns exec`, which also hides mounts, and pods would have no Secrets.
in_namespace() {
  local name=$1
  shift
  nsenter --net="/var/run/netns/$name" -- "$@"
}

kubectl() { in_namespace $CONTROL_PLANE "$BIN/kubectl" --kubeconfig "$RUN/admin.kubeconfig" "$@"; }

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "waited in vain for: $*" >&2; return 1; }
    sleep 0.1
  done
}
