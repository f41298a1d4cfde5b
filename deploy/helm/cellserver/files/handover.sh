# Runs beside a server until the pod is ended. If the server leads then, this asks the Sentinels for a failover, in which
# nothing is lost, and waits until the server follows. Meanwhile the server waits in its preStop.
set -eu

ask() { timeout 5 redis-cli -h "$@" 2>/dev/null | tr -d '\r'; }

role() {
  REDISCLI_AUTH=$(cat "$SENTINEL_PASSWORD_FILE") ask "$SERVER" -p 6380 --user sentinel info replication |
    sed -n 's/^role://p'
}

hand_over() {
  [ "$(role)" = master ] || return 0
  for host in $SENTINELS; do
    answer=$(REDISCLI_AUTH=$(cat "$REQUIREPASS_FILE") ask "$host" -p 26379 sentinel failover cellserver)
    echo "failover asked of $host: ${answer:-no answer}"
    case $answer in OK* | INPROG*) break ;; esac
  done
  tries=100
  until [ "$(role)" = slave ] || [ "$tries" = 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
  done
}

trap 'hand_over; ${!:+kill $!}; exit 0' TERM
echo "waiting for the end of the pod"
while :; do
  sleep 3600 &
  wait $!
done
