#!/usr/bin/env bash
# Builds a real kube-apiserver, kube-controller-manager and etcd from Go modules, by name, once; later calls find them.
# Tests compare the embedded server with these. The result lives outside the checkout; the last line printed is its folder.
set -euo pipefail

version=1.32.13
etcd=3.5.21
home=${TRIMTAB_CLUSTER:-${XDG_CACHE_HOME:-$HOME/.cache}/trimtab/cluster/v$version}
bin=$home/bin
mkdir -p "$bin"

if [ ! -x "$bin/kube-apiserver" ] || [ ! -x "$bin/kube-controller-manager" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  staging="api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap
    code-generator component-base component-helpers controller-manager cri-api cri-client csi-translation-lib
    dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager kube-proxy
    kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver sample-cli-plugin
    sample-controller"
  {
    printf 'module local/cluster\ngo 1.23.0\nrequire k8s.io/kubernetes v%s\nreplace (\n' "$version"
    for module in $staging; do
      # Not every patch release of every module is to be had; these have not changed since the one named.
      case $module in
        csi-translation-lib | cri-client | kube-scheduler) patch=32.10 ;;
        kube-controller-manager | endpointslice) patch=32.5 ;;
        *) patch=${version#1.} ;;
      esac
      printf '  k8s.io/%s => k8s.io/%s v0.%s\n' "$module" "$module" "$patch"
    done
    printf ')\n'
  } > "$work/go.mod"
  flags=""
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags="$flags -X $package.gitVersion=v$version -X $package.gitMajor=1 -X $package.gitMinor=32 -X $package.gitTreeState=clean"
  done
  echo "building kube-apiserver $version from Go modules (about ten minutes the first time)" >&2
  (cd "$work" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -ldflags "$flags" -o "$bin/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager)
fi

if [ ! -x "$bin/etcd" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo "building etcd $etcd from Go modules" >&2
  (cd "$work" && go mod init local/etcd >/dev/null 2>&1 && GOFLAGS=-mod=mod go get "go.etcd.io/etcd/server/v3@v$etcd" \
    && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o "$bin/etcd" go.etcd.io/etcd/server/v3)
fi

echo "$home"
