#!/bin/bash
# etcd, kube-apiserver, kube-controller-manager and kube-scheduler. Returns when pods may be created.
set -e
. "$(dirname "$0")/common.sh"
mkdir -p "$LOGS"

# start NAME PROGRAM...
start() {
  local name=$1
  shift
  setsid nsenter --net=/var/run/netns/$CONTROL_PLANE -- "$@" >"$LOGS/$name.log" 2>&1 </dev/null &
}

start etcd etcd --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380
start apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
  --bind-address=0.0.0.0 --advertise-address=$ADDRESS --secure-port=6443 \
  --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
  --client-ca-file="$PKI/ca.crt" --token-auth-file="$PKI/tokens.csv" \
  --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
  --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
  --service-account-key-file="$PKI/service-accounts.pub" \
  --service-account-signing-key-file="$PKI/service-accounts.key" \
  --service-account-issuer=https://kubernetes.default.svc \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
  --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=true
wait_for 120 kubectl --request-timeout=2s get --raw /readyz
# Without the second option the controllers have no rights, and no pod is ever created.
start manager "$BIN/kube-controller-manager" --kubeconfig="$RUN/manager.kubeconfig" \
  --use-service-account-credentials=true --leader-elect=false --bind-address=127.0.0.1 \
  --service-account-private-key-file="$PKI/service-accounts.key" --root-ca-file="$PKI/ca.crt" \
  --node-monitor-period=2s --node-monitor-grace-period=40s --kube-api-qps=200 --kube-api-burst=400
start scheduler "$BIN/kube-scheduler" --kubeconfig="$RUN/scheduler.kubeconfig" \
  --leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=200 --kube-api-burst=400
wait_for 60 kubectl -n default get serviceaccount default
