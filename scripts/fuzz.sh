#!/usr/bin/env bash
# Runs every fuzz target of the module for a time each.
#
#   scripts/fuzz.sh [TIME]     default 20s
set -euo pipefail
cd "$(dirname "$0")/.."
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "fuzz $package $target ${1:-20s}"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:-20s}" "$package"
	done
done
