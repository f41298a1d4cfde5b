#!/usr/bin/env bash
# Fuzzes for so many seconds in all, divided among the fuzz targets of the module.
#
#   scripts/fuzz.sh [SECONDS]     default 60
set -euo pipefail
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# Go before 1.27 may fail with "context deadline exceeded" when the time is over although nothing was found
# (go.dev/issue/75804). A real finding always writes an input.
is_timeout() {
	grep -q '^ *context deadline exceeded$' "$output" && ! grep -q 'Failing input written' "$output"
}

mapfile -t targets < <(grep -rho --include='*_test.go' '^func Fuzz[A-Za-z]*' --with-filename internal cmd | sed 's/:func /\t/')
each="$((${1:-60} * 1000 / ${#targets[@]}))ms"
for target in "${targets[@]}"; do
	package=./$(dirname "${target%%$'\t'*}") name=${target##*$'\t'}
	echo "fuzz $package $name $each"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$each" "$package" | tee "$output" || is_timeout
done
