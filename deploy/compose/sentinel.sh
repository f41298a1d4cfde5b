# Starts a Sentinel, whose file is in /data. Without that file it asks the other Sentinels which server leads, and if none
# of them knows, the servers, until just one of the two leads.
set -eu
REDISCLI_AUTH=$(cat "$REQUIREPASS_FILE")
export REDISCLI_AUTH

ask() { timeout 1 redis-cli -h "$@" 2>/dev/null | tr -d '\r'; }

is_server() { case " $SERVERS " in *" ${1:-none} "*) ;; *) false ;; esac }

# Prints the leader's address, or says what it waits for. With time the answer of one server is enough: that it leads, or
# whom it follows; and of two that lead, as they did not find each other when they started, it is the one with more keys.
# A leader that is gone the Sentinels replace, unless its replica has been without it for half a minute.
find_leader() {
  for host in $SENTINELS; do
    leader=$(ask "$host" -p 26379 sentinel get-master-addr-by-name cellserver | head -n 1)
    if is_server "$leader"; then echo "$leader" && return; fi
  done
  leaders= named= leading=0 following=0
  for host in $SERVERS; do
    info=$(ask "$host" -p 6380 info replication)
    case $info in
      *cell_starting:[!n]*) ;; # it has not decided yet
      *role:master*)
        leading=$((leading + 1))
        leaders="$leaders$(ask "$host" -p 6380 dbsize) $host
"
        ;;
      *role:slave*)
        following=$((following + 1))
        named=$(echo "$info" | sed -n 's/^master_host://p')
        ;;
    esac
  done
  case $leading-$following in
    1-1) enough=0 ;;
    1-0) enough=30 ;;
    2-0) enough=10 ;;
    *) enough=5 ;;
  esac
  [ "$leading" = 0 ] || named=$(printf %s "$leaders" | sort -rns | head -n 1 | cut -d ' ' -f 2)
  if [ "$tries" -ge "$enough" ] && is_server "$named"; then echo "$named" && return; fi
  echo "of the servers $leading lead and $following follow" >&2
  false
}

if [ ! -s /data/sentinel.conf ]; then
  tries=0
  until leader=$(find_leader); do
    tries=$((tries + 1))
    sleep 1
  done
  {
    cat <<END
port 26379
dir /data
requirepass $REDISCLI_AUTH
sentinel myid $(printf %s "$ADDRESS" | sha1sum | cut -c 1-40)
sentinel announce-ip $ADDRESS
sentinel resolve-hostnames yes
sentinel announce-hostnames yes
sentinel monitor cellserver $leader 6380 2
sentinel auth-user cellserver sentinel
sentinel auth-pass cellserver $(cat "$SENTINEL_PASSWORD_FILE")
sentinel down-after-milliseconds cellserver 3000
sentinel failover-timeout cellserver 10000
sentinel parallel-syncs cellserver 1
END
    # A Sentinel learns of the other server from the leader only, which may be gone.
    for host in $SERVERS; do
      [ "$host" = "$leader" ] || echo "sentinel known-replica cellserver $host 6380"
    done
  } >/data/sentinel.conf.new
  mv /data/sentinel.conf.new /data/sentinel.conf
fi
exec redis-server /data/sentinel.conf --sentinel
