#!/usr/bin/env bash
# Builds a real Terraform provider that is written in Go and speaks plugin protocol 5, by name, once; later calls find it.
# Tests put it behind our own server. The result lives outside the checkout; the last line printed is its path.
set -euo pipefail

version=0.13.1
home=${XDG_CACHE_HOME:-$HOME/.cache}/trimtab/providers/time-$version
program=$home/terraform-provider-time
if [ ! -x "$program" ]; then
  mkdir -p "$home"
  echo "building terraform-provider-time $version from Go modules" >&2
  GOBIN=$home CGO_ENABLED=0 go install "github.com/hashicorp/terraform-provider-time@v$version"
fi
echo "$program"
