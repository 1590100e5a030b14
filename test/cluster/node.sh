#!/bin/bash
# node.sh NAME: containerd, kubelet and kube-proxy, in the node's network namespace and a mount namespace of its own.
set -e
. "$(dirname "$0")/common.sh"
NODE=$1
NUMBER=${NODE#n}
HOME_DIR=$RUN/$NODE
GROUP=quern-$NODE
mkdir -p "$HOME_DIR"/{containerd,run,kubelet,pods,cni,netns,container-logs} "$LOGS"

# kubelet wants its control group in each hierarchy of version 1.
for hierarchy in /sys/fs/cgroup/*/; do
  [ "$(basename "$hierarchy")" = unified ] && continue
  mkdir -p "$hierarchy/$GROUP"
  [ -e "$hierarchy/cpuset.cpus" ] || continue
  cat "$hierarchy/cpuset.cpus" >"$hierarchy/$GROUP/cpuset.cpus"
  cat "$hierarchy/cpuset.mems" >"$hierarchy/$GROUP/cpuset.mems"
done

# `restrict_oom_score_adj`: without CAP_SYS_RESOURCE nothing may lower it, and runc would fail.
cat >"$HOME_DIR/containerd.toml" <<CONFIG
version = 2
root = "$HOME_DIR/containerd"
state = "$HOME_DIR/run"
[grpc]
address = "$HOME_DIR/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "quern.test/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "$HOME_DIR/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
CONFIG

cat >"$HOME_DIR/cni/pods.conflist" <<CONFIG
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$HOME_DIR/ipam", "ranges": [[{"subnet": "10.244.$NUMBER.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
CONFIG

# Both nodes see all of the machine's memory and CPUs. What is reserved for the system keeps them from filling it.
cat >"$HOME_DIR/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 10.250.0.1$NUMBER
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/$NODE.crt
tlsPrivateKeyFile: $PKI/$NODE.key
cgroupDriver: cgroupfs
cgroupRoot: /$GROUP
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$HOME_DIR/containerd.sock
podLogsDir: $HOME_DIR/pods
resolvConf: $HOME_DIR/resolv.conf
clusterDomain: cluster.local
clusterDNS: [$ADDRESS]
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
systemReserved: {memory: 2Gi}
nodeStatusUpdateFrequency: 4s
oomScoreAdj: 0
CONFIG
: >"$HOME_DIR/resolv.conf"

cat >"$HOME_DIR/run.sh" <<SCRIPT
mkdir -p /var/lib/kubelet /var/log/containers
mount --bind $HOME_DIR/kubelet /var/lib/kubelet
mount --bind $HOME_DIR/container-logs /var/log/containers
mount --bind $HOME_DIR/netns /var/run/netns
mount --make-rshared /
containerd -c $HOME_DIR/containerd.toml >$LOGS/$NODE.containerd.log 2>&1 &
until ctr -a $HOME_DIR/containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
for image in $IMAGES; do ctr -a $HOME_DIR/containerd.sock -n k8s.io images import \$image >>$LOGS/$NODE.import.log 2>&1; done
$BIN/kube-proxy --kubeconfig=$RUN/proxy.kubeconfig --hostname-override=$NODE --proxy-mode=iptables \
  --cluster-cidr=10.244.0.0/16 --conntrack-max-per-core=0 --oom-score-adj=0 \
  --healthz-bind-address=127.0.0.1:10256 --metrics-bind-address=127.0.0.1:10249 >$LOGS/$NODE.proxy.log 2>&1 &
exec $BIN/kubelet --config=$HOME_DIR/kubelet.yaml --kubeconfig=$RUN/$NODE.kubeconfig --root-dir=/var/lib/kubelet \
  --cert-dir=$HOME_DIR/certificates --hostname-override=$NODE --node-ip=10.250.0.1$NUMBER >$LOGS/$NODE.kubelet.log 2>&1
SCRIPT
setsid nsenter --net="/var/run/netns/$(namespace "$NODE")" -- \
  unshare -m --propagation private bash "$HOME_DIR/run.sh" >"$LOGS/$NODE.log" 2>&1 </dev/null &
