#!/usr/bin/env bash
# Makes sure that the programs which tests drive are here: from the machine, else from Debian or Go modules, by name.
# `packages.sh tofu` sees to OpenTofu alone, and prints its path.
set -euo pipefail

bin=${TRIMTAB_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/trimtab/tools/bin}

debian() { # the command, the packages and options
  type -P "$1" >/dev/null && return
  if [ "$(id -u)" != 0 ] || ! type -P apt-get >/dev/null; then
    echo "tests need '$1': install the package '$2'" >&2
    exit 1
  fi
  echo "installing $2" >&2
  apt-get update -qq && asleep apt-get install -qq -y "${@:2}" >/dev/null
}

asleep() ( # a command during which no package starts the daemon that it brings: tests start their own
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod 755 "$policy"
  fi
  DEBIAN_FRONTEND=noninteractive "$@"
)

postgres() { # Debian keeps the server out of the path
  type -P postgres >/dev/null && type -P initdb >/dev/null && return
  for folder in /usr/lib/postgresql/*/bin; do
    [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ] && return
  done
  debian postgres postgresql
}

npm_package() { # the package, its version: into a folder of its own beside the tools
  folder=${bin%/bin}/node
  [ -e "$folder/node_modules/$1/package.json" ] && return
  debian node nodejs
  debian npm npm
  echo "installing $1 from npm" >&2
  mkdir -p "$folder"
  npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "$1@$2" >/dev/null
}

kubectl() {
  type -P kubectl >/dev/null && return
  [ -x "$bin/kubectl" ] && return
  debian go golang
  echo "building kubectl from Go modules" >&2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$bin"
  (cd "$work" && go mod init local/kubectl >/dev/null 2>&1 &&
    printf 'package main\n\nimport (\n\t"os"\n\n\t"k8s.io/component-base/cli"\n\t"k8s.io/kubectl/pkg/cmd"\n)\n\nfunc main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }\n' > main.go &&
    GOFLAGS=-mod=mod go get k8s.io/kubectl@v0.32.13 k8s.io/component-base@v0.32.13 &&
    GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o "$bin/kubectl" \
      -ldflags "-X k8s.io/component-base/version.gitVersion=v1.32.13 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=32" .)
}

helm() {
  type -P helm >/dev/null && return
  [ -x "$bin/helm" ] && return
  debian go golang
  echo "building helm from Go modules" >&2
  mkdir -p "$bin"
  GOBIN=$bin GOFLAGS=-mod=mod CGO_ENABLED=0 go install helm.sh/helm/v3/cmd/helm@v3.17.3
}

tofu() { # OpenTofu; a newer version here is built anew
  version=1.12.6
  home=${bin%/bin}/tofu-$version
  if [ ! -x "$home/tofu" ]; then
    debian go golang
    echo "building OpenTofu $version from Go modules" >&2
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$home"
    # Its own module replaces HCL, which counts only in the main one.
    printf 'module local/tofu\ngo 1.26.6\nrequire github.com/opentofu/opentofu v%s\nreplace github.com/hashicorp/hcl/v2 => %s\n' \
      "$version" 'github.com/opentofu/hcl/v2 v2.20.2-0.20251021132045-587d123c2828' > "$work/go.mod"
    (cd "$work" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -o "$home/tofu" \
      -ldflags "-X github.com/opentofu/opentofu/version.dev=no" github.com/opentofu/opentofu/cmd/tofu)
  fi
  mkdir -p "$bin"
  ln -sf "$home/tofu" "$bin/tofu"
  echo "$home/tofu"
}

terraform() { # OpenTofu under its name, where the machine has none
  type -P terraform >/dev/null && return
  tofu >/dev/null
  ln -sf tofu "$bin/terraform"
}

if [ $# -gt 0 ]; then # one of the above alone, by its name
  "$@"
  exit
fi

debian openssl openssl
debian git git
debian ip iproute2
debian snmpd snmpd
debian snmpget snmp
debian sshd openssh-server
debian ssh openssh-client
debian gpg gnupg
debian netconfd netconfd
debian nmap nmap
debian masscan masscan
debian fping fping
debian rpm rpm
debian db5.3_load db5.3-util
debian docker-registry docker-registry
debian htpasswd apache2-utils
debian skopeo skopeo
debian lxd lxd --no-install-recommends
debian pdns_server pdns-server pdns-backend-sqlite3 --no-install-recommends
debian prometheus-alertmanager prometheus-alertmanager --no-install-recommends
debian podman podman --no-install-recommends
debian runc runc --no-install-recommends
debian prometheus prometheus --no-install-recommends
debian wrk wrk --no-install-recommends
debian busybox busybox-static --no-install-recommends
debian zsh zsh --no-install-recommends
debian fish fish --no-install-recommends
debian go golang
debian ruby ruby
debian java openjdk-17-jre-headless
[ -e /usr/share/java/maven-artifact-3.x.jar ] || debian maven-artifact-3.x.jar libmaven3-core-java
npm_package @microsoft.azure/autorest.testserver 3.3.51
postgres
kubectl
helm
terraform
