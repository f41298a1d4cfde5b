#!/usr/bin/env bash
# Fuzzes for so many seconds in all, divided among the fuzz targets of the module, one target on each processor at a time.
#
#   scripts/fuzz.sh [SECONDS]     default 60
set -euo pipefail
cd "$(dirname "$0")/.."

# Go before 1.27 may fail with "context deadline exceeded" when the time is over although nothing was found
# (go.dev/issue/75804). A real finding always writes an input.
is_timeout() {
	grep -q '^ *context deadline exceeded$' <<<"$1" && ! grep -q 'Failing input written' <<<"$1"
}

# fuzz PACKAGE TARGET TIME
fuzz() {
	local output
	output=$(go test -vet=off -run '^$' -fuzz "^$2\$" -fuzztime "$3" -parallel 1 "$1" 2>&1) || is_timeout "$output" ||
		{ printf 'fuzz %s %s %s: failed\n%s\n' "$1" "$2" "$3" "$output" && return 1; }
	printf 'fuzz %s %s %s: %s\n' "$1" "$2" "$3" "$(sed -n 's/^fuzz: elapsed: //p' <<<"$output" | tail -n 1)"
}
export -f fuzz is_timeout

mapfile -t targets < <(grep -rho --include='*_test.go' '^func Fuzz[A-Za-z]*' --with-filename internal |
	sed -E 's|^(.*)/[^/]*:func (.*)|./\1 \2|' | sort)
processors=$(getconf _NPROCESSORS_ONLN)
each="$((${1:-60} * 1000 * processors / ${#targets[@]}))ms"
printf "%s $each\n" "${targets[@]}" | xargs -P "$processors" -L 1 bash -euo pipefail -c 'fuzz "$@"' fuzz
