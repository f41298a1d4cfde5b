#!/usr/bin/env bash
# Looks for tests that fail by luck: runs the short tests of all packages several times, and then those of the packages that
# wait most many times, beside busy loops. Prints what failed, how often and with which seed, and fails if anything did.
#
#   scripts/flaky.sh
#
# Environment variables, with their defaults:
#   RUNS=5            runs of all packages
#   WAITING=10        packages to run more often: those whose time exceeds their CPU time most
#   WAITING_RUNS=20   runs of these
#   BUSY=2            busy loops beside the tests
#   PACKAGES=./...    patterns of packages
#   MODULES=...       directories of modules; without PACKAGES all, else the root
set -euo pipefail
shopt -s inherit_errexit
script=$(readlink -f "$0")

# go test -exec calls the script with a test and its arguments, to note the test's time, and its CPU time with its children's.
if [[ -n ${FLAKY_TIMES:-} ]]; then
	TIMEFORMAT="%R %U %S ${FLAKY_MODULE:?} $PWD"
	exec 3>&2
	{ time "$@" 2>&3; } 2>>"$FLAKY_TIMES"
	exit
fi

cd "$(dirname "$script")/.."
root=$PWD
if [[ -z ${MODULES:-} ]]; then
	MODULES=.
	[[ -n ${PACKAGES:-} ]] || MODULES=". adapters/go adapters/go/cellgrpc bench lab"
fi
read -ra modules <<<"$MODULES"
read -ra packages <<<"${PACKAGES:-./...}"
kept=$(mktemp -d)
touch "$kept/times"
loops=()

# finish ends the busy loops, and keeps the logs if something failed.
finish() {
	local status=$?
	((${#loops[@]} == 0)) || kill "${loops[@]}" 2>/dev/null || true
	if ((status == 0)); then
		rm -rf "$kept"
	else
		echo "what the tests printed is in $kept" >&2
	fi
}
trap finish EXIT
trap 'exit 130' INT TERM

# busy computes until the script has ended, however it does.
busy() {
	while kill -0 "$$" 2>/dev/null; do
		for ((i = 0; i < 100000; i++)); do :; done
	done
}
for ((n = 0; n < ${BUSY:-2}; n++)); do
	busy &
	loops+=($!)
done

# run LOG MODULE PACKAGE...: runs tests once. What fails is found in the log.
run() {
	local log=$1 module=$2
	shift 2
	(cd "$module" && go test -json -vet=off -short -count=1 -p 4 -parallel 4 -timeout 60m "${exec[@]}" "$@") >"$log" 2>"$log.err" ||
		grep -q '"Action":"fail"' "$log" ||
		printf '{"Action":"fail","Package":"module %s: see %s"}\n' "$module" "$log.err" >>"$log"
}

exec=(-exec "$script")
for ((n = 1; n <= ${RUNS:-5}; n++)); do
	echo "run $n of ${RUNS:-5}: ${modules[*]}"
	for module in "${modules[@]}"; do
		FLAKY_TIMES="$kept/times" FLAKY_MODULE="$module" run "$kept/all-$n-${module//\//-}.json" "$module" "${packages[@]}"
	done
	exec=()
done

# Lines of MODULE and DIRECTORY.
waiting=$(awk '{ print $1 - $2 - $3, $4, $5 }' "$kept/times" | sort -rn | awk -v "most=${WAITING:-10}" 'NR <= most { print $2, $3 }')
exec=()
for ((n = 1; n <= ${WAITING_RUNS:-20}; n++)); do
	[[ -n $waiting ]] || break
	((n > 1)) || printf 'the packages that wait most, %d runs:\n%s\n' "${WAITING_RUNS:-20}" "${waiting//"$root"/.}"
	for module in "${modules[@]}"; do
		mapfile -t most < <(awk -v "module=$module" '$1 == module { print $2 }' <<<"$waiting")
		((${#most[@]} == 0)) || run "$kept/waiting-$n-${module//\//-}.json" "$module" "${most[@]}"
	done
done

# A failure counts for its innermost subtest, and for the package if no test failed. A run's seed is logged by a test, by one that
# it is part of, or by one of its parts.
# shellcheck disable=SC2016 # the program is awk's
awk '
function field(name,   text) {
	if (!match($0, "\"" name "\":\"([^\"\\\\]|\\\\.)*\""))
		return ""
	text = substr($0, RSTART, RLENGTH)
	return substr(text, length(name) + 5, length(text) - length(name) - 5)
}
function outer(test) { return sub(/\/[^\/]*$/, "", test) ? test : "" }
{
	action = field("Action"); package = field("Package"); test = field("Test")
	at = FILENAME SUBSEP package SUBSEP
	what = package (test == "" ? "" : " " test)
}
action == "output" && match($0, /CELLSERVER_TEST_SEED=[0-9]+/) {
	seed = substr($0, RSTART, RLENGTH)
	said[at test] = seed
	for (t = test; t != ""; t = outer(t))
		below[at t] = seed
}
action == "pass" || action == "fail" { ran[what]++ }
action == "fail" {
	if (!inner[at test]) {
		failed[what]++
		seed = below[at test]
		for (t = outer(test); seed == "" && t != ""; t = outer(t))
			seed = said[at t]
		if (seed != "" && index(seeds[what], seed) == 0)
			seeds[what] = seeds[what] " " seed
	}
	if (test != "")
		inner[at outer(test)] = 1
}
END {
	for (what in failed) {
		print "FAILED " what ": " failed[what] " of " ran[what] " runs" seeds[what]
		any = 1
	}
	if (!any)
		print "nothing failed"
	exit any
}' "$kept"/*.json
