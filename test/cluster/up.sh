#!/bin/bash
# Starts a Kubernetes of two nodes. Returns when both are ready.
set -e
cd "$(dirname "$0")"
. ./common.sh
export BIN RUN IMAGES
./certificates.sh
./network.sh
./control-plane.sh
for node in $NODES; do ./node.sh "$node"; done
is_ready() { kubectl get node "$1" --no-headers | grep -q ' Ready'; }
for node in $NODES; do wait_for 60 is_ready "$node"; done
