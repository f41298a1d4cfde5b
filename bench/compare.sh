#!/usr/bin/env bash
# Measures cellserver's CL.THROTTLE beside redis-server's SET with redis-benchmark: 50 connections, 100,000 random
# keys, interleaved rounds, and prints the medians of the rate and of the server's CPU time per request.
#
#   bench/compare.sh [ROUNDS]     default 5
#
# Needs redis-server and redis-benchmark (Debian: apt-get install redis-server redis-tools) and Go.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

go build -o "$dir/cellserver" ./cmd/cellserver
cell_port=16380 redis_port=16379
"$dir/cellserver" --addr "127.0.0.1:$cell_port" --metrics-addr "" --log-level error &
pids+=($!)
redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly no --dir "$dir" >/dev/null &
pids+=($!)
cell_pid=${pids[0]} redis_pid=${pids[1]}
for i in 0 1; do
	ports=("$cell_port" "$redis_port")
	until redis-cli -p "${ports[i]}" ping >/dev/null 2>&1; do
		kill -0 "${pids[i]}" || exit 1
		sleep 0.1
	done
done
sleep 0.2
kill -0 "${pids[@]}" # or a stranger has the port

ticks=$(getconf CLK_TCK)
# cpu PID: the process's user and system time so far, in clock ticks.
cpu() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

# measure NAME PORT PID REQUESTS PIPELINE COMMAND...: appends "rate cpu_us_per_request" to the result's file.
measure() {
	local name=$1 port=$2 pid=$3 requests=$4 pipeline=$5 before after rate
	shift 5
	before=$(cpu "$pid")
	rate=$(redis-benchmark -p "$port" -c 50 -r 100000 -n "$requests" -P "$pipeline" --csv "$@" |
		awk -F'","' 'END { print $2 }')
	after=$(cpu "$pid")
	awk -v r="$rate" -v t=$((after - before)) -v hz="$ticks" -v n="$requests" \
		'BEGIN { printf "%.0f %.4f\n", r, t / hz / n * 1e6 }' >>"$dir/$name.$pipeline"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for ((round = 0; round <= rounds; round++)); do # round 0 warms up and fills the stores
	for load in "200000 1" "2000000 16" "4000000 128"; do
		read -r requests pipeline <<<"$load"
		measure cell "$cell_port" "$cell_pid" "$requests" "$pipeline" cl.throttle k:__rand_int__ 15 30 60 1
		measure set "$redis_port" "$redis_pid" "$requests" "$pipeline" set k:__rand_int__ 1
	done
	((round > 0)) || rm "$dir"/cell.* "$dir"/set.*
	printf 'round %d of %d\n' "$round" "$rounds" >&2
done

printf '| pipelined | cellserver, thousand/s | SET, thousand/s | cellserver, CPU us | SET, CPU us | CPU ratio |\n'
printf '| --- | --- | --- | --- | --- | --- |\n'
column() { cut -d' ' -f"$2" "$dir/$1" | median; }
for pipeline in 1 16 128; do
	ratio=$(paste -d' ' "$dir/cell.$pipeline" "$dir/set.$pipeline" | awk '{ print $2 / $4 }' | median)
	awk -v p="$pipeline" -v q="$ratio" \
		-v cr="$(column "cell.$pipeline" 1)" -v sr="$(column "set.$pipeline" 1)" \
		-v cc="$(column "cell.$pipeline" 2)" -v sc="$(column "set.$pipeline" 2)" \
		'BEGIN { printf "| %s | %.0f | %.0f | %.2f | %.2f | %.2f |\n", p, cr / 1000, sr / 1000, cc, sc, q }'
done
