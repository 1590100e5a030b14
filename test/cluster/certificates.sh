#!/bin/bash
# The certificates and tokens of the cluster's own programs.
set -e
. "$(dirname "$0")/common.sh"
mkdir -p "$PKI"
cd "$PKI"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

# certificate NAME SUBJECT ALTERNATIVE_NAMES
certificate() {
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$3" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out "$1.crt" -extfile "$1.ext" 2>/dev/null
}

# kubeconfig NAME USER GROUP: with a token of its own.
kubeconfig() {
  local token
  token=$(openssl rand -hex 16)
  echo "$token,$2,$2,\"$3\"" >>tokens.csv
  cat >"$RUN/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$ADDRESS:6443", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: user, user: {token: $token}}]
contexts: [{name: test, context: {cluster: test, user: user}}]
current-context: test
CONFIG
}

key ca
openssl req -x509 -new -key ca.key -subj /CN=quern-test -days 30 -out ca.crt 2>/dev/null
service=kubernetes.default.svc
certificate apiserver /CN=kube-apiserver "IP:127.0.0.1,IP:$ADDRESS,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:$service"
certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client DNS:none
openssl genrsa -out service-accounts.key 2048 2>/dev/null
openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2>/dev/null
kubeconfig admin admin system:masters
kubeconfig manager system:kube-controller-manager system:authenticated
kubeconfig scheduler system:kube-scheduler system:authenticated
kubeconfig proxy system:kube-proxy system:node-proxier
for node in $NODES; do
  kubeconfig "$node" "system:node:$node" system:nodes
  certificate "$node" "/O=system:nodes/CN=system:node:$node" "DNS:$node,IP:10.250.0.1${node#n}"
done
