package ratelimit

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/app/settings"
)

// environment is a test's.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

func (e environment) and(more environment) environment {
	all := maps.Clone(e)
	maps.Copy(all, more)
	return all
}

func complete(t *testing.T, e environment) *settings.Options {
	t.Helper()
	o := &settings.Options{}
	if err := Complete(o, e.lookup); err != nil {
		t.Fatalf("%v: %v", e, err)
	}
	return o
}

// envoyGateway is what its translator renders.
func envoyGateway() environment {
	return environment{
		"RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_IGNOREDOTFILES": "true", "RUNTIME_WATCH_ROOT": "false",
		"LOG_LEVEL": "info", "USE_STATSD": "false", "CONFIG_TYPE": "GRPC_XDS_SOTW",
		"CONFIG_GRPC_XDS_SERVER_URL": "envoy-gateway:18001", "CONFIG_GRPC_XDS_NODE_ID": "envoy-ratelimit",
		"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": "/certs/tls.crt", "GRPC_SERVER_TLS_KEY": "/certs/tls.key",
		"GRPC_SERVER_TLS_CA_CERT": "/certs/ca.crt", "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true",
		"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "/certs/tls.crt", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY": "/certs/tls.key",
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "/certs/ca.crt", "FORCE_START_WITHOUT_INITIAL_CONFIG": "true",
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis.redis.svc:6379",
		"USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": ":19001", "PROMETHEUS_MAPPER_YAML": "/etc/statsd-exporter/conf.yaml",
	}
}

// TestSettings: environments, and the settings that they make.
func TestSettings(t *testing.T) {
	t.Parallel()
	redis := environment{"CELLSERVER_USE_REDIS": "true", "REDIS_URL": "redis:6379", "REDIS_SOCKET_TYPE": "tcp"}
	xds := environment{"CONFIG_TYPE": "GRPC_XDS_SOTW"}
	for _, tt := range []struct {
		name string
		env  environment
		want string // settings, as NAME=VALUE
	}{
		{"defaults", nil, "addr=127.0.0.1:6380 metrics-addr=127.0.0.1:9380 http-addr= grpc-addr=:8081 grpc-tls-addr= data-dir= log-level=warn log-format=text " +
			"envoy-config=/srv/runtime_data/current/config envoy-xds= envoy-headers=false envoy-metadata=false store=memory protected-mode=yes"},
		{"addresses", environment{"GRPC_HOST": "::1", "GRPC_PORT": "0x1F90"}, "grpc-addr=[::1]:8080"},
		{"a socket", environment{"GRPC_UDS": "/tmp/s"}, "grpc-addr= grpc-tls-addr="},
		{"files", environment{"RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_APPDIRECTORY": "limits"}, "envoy-config=/data/ratelimit/limits"},
		{"logs", environment{"LOG_LEVEL": "Trace", "LOG_FORMAT": "JSON"}, "log-level=debug log-format=json"},
		{"answers", environment{"LIMIT_RESPONSE_HEADERS_ENABLED": "T", "RESPONSE_DYNAMIC_METADATA": "1"}, "envoy-headers=true envoy-metadata=true"},
		{"xDS", xds, "envoy-config= envoy-xds=localhost:18000 envoy-xds-node-id=default envoy-xds-tls=false envoy-xds-max-message-bytes=4194304"},
		{"more of xDS", xds.and(environment{
			"CONFIG_GRPC_XDS_SERVER_URL": "dns:///there", "CONFIG_GRPC_XDS_NODE_METADATA": "a=1,b,c=x=y", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "h:1,i:2",
			"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "8388608", "CONFIG_GRPC_XDS_SERVER_USE_TLS": "true", "CONFIG_GRPC_XDS_SERVER_TLS_SAN": "san",
			"CONFIG_GRPC_XDS_CLIENT_TLS_CERT": "alone",
		}), "envoy-xds=there:443 envoy-xds-node-metadata=a=1,c=x=y envoy-xds-headers=h=1,i=2 envoy-xds-max-message-bytes=8388608 envoy-xds-tls=true " +
			"envoy-xds-tls-name=san envoy-xds-tls-cert="},
		{"a bound of 0", xds.and(environment{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "0"}), "envoy-xds-max-message-bytes=4194304"},
		{"a bound beyond all", xds.and(environment{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "1000000000000"}), "envoy-xds-max-message-bytes=1073741824"},
		{"TLS of xDS that is off", xds.and(environment{"CONFIG_GRPC_XDS_SERVER_TLS_CACERT": "ca"}), "envoy-xds-tls-ca="},
		{"cellserver's own", environment{
			"CELLSERVER_LOG_LEVEL": "error", "LOG_LEVEL": "debug", "CELLSERVER_ADDR": "0.0.0.0:6380", "CELLSERVER_GRPC_ADDR": "127.0.0.1:1", "CELLSERVER_ENVOY_CONFIG": "/limits",
			"CONFIG_TYPE": "GRPC_XDS_SOTW",
		}, "log-level=error addr=0.0.0.0:6380 grpc-addr=127.0.0.1:1 envoy-config=/limits envoy-xds="},
		{"cellserver's own xDS", environment{"CELLSERVER_ENVOY_XDS": "there:1"}, "envoy-config= envoy-xds=there:1"},
		{"the image's", environment{"CELLSERVER_ADDR": ":6380", "CELLSERVER_METRICS_ADDR": ":9380"}, "addr=127.0.0.1:6380 metrics-addr=127.0.0.1:9380"},
		{"a Redis that is not asked for", environment{"REDIS_URL": "redis:6379"}, "store=memory"},
		{"a Redis", redis.and(environment{"CACHE_KEY_PREFIX": "p:"}), "store=redis://redis:6379 key-prefix=p:"},
		{"a password", redis.and(environment{"REDIS_AUTH": "p@ss/1"}), "store=redis://:p%40ss%2F1@redis:6379"},
		{"a user", redis.and(environment{"REDIS_AUTH": "u:p:q"}), "store=redis://u:p%3Aq@redis:6379"},
		{"a URL", redis.and(environment{"REDIS_URL": "redis://u:p%40@redis:6379/3"}), "store=redis://u:p%40@redis:6379/3"},
		{"TLS", redis.and(environment{"REDIS_TLS": "true", "REDIS_TLS_CLIENT_CERT": "c", "REDIS_TLS_CLIENT_KEY": "k", "REDIS_TLS_CACERT": "a"}),
			"store=rediss://redis:6379 store-tls-cert=c store-tls-key=k store-tls-ca=a"},
		{"a cluster", environment{"CELLSERVER_USE_REDIS": "1", "REDIS_TYPE": "cluster", "REDIS_URL": "a:1,b:2", "REDIS_AUTH": "pw"}, "store=redis-cluster://:pw@a:1,b:2"},
		{"sentinels", redis.and(environment{"REDIS_TYPE": "SENTINEL", "REDIS_URL": "main,a:1,b:2"}), "store=redis-sentinel://a:1,b:2/main"},
		{"cellserver's own store", redis.and(environment{"CELLSERVER_STORE": "redis://there:1"}), "store=redis://there:1"},
		{"Envoy Gateway's", envoyGateway(), "addr=127.0.0.1:6380 metrics-addr=127.0.0.1:9380 grpc-addr= grpc-tls-addr=:8081 log-level=info envoy-config= " +
			"envoy-xds=envoy-gateway:18001 envoy-xds-node-id=envoy-ratelimit envoy-xds-tls=true envoy-xds-tls-ca=/certs/ca.crt envoy-xds-tls-cert=/certs/tls.crt " +
			"envoy-xds-tls-key=/certs/tls.key tls-cert= tls-client-ca= store=memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := complete(t, tt.env)
			for want := range strings.SplitSeq(tt.want, " ") {
				name, value, _ := strings.Cut(want, "=")
				if got := o.Values[name]; got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
		})
	}
}

// TestOptions: what is no setting of cellserver.
func TestOptions(t *testing.T) {
	t.Parallel()
	o := complete(t, nil).Doors.Envoy
	want := settings.RatelimitOptions{
		On: true, HTTPAddr: ":8080", DebugAddr: ":6070", MaxConnectionAge: 24 * time.Hour, MaxConnectionAgeGrace: time.Hour,
		ExtraTags: map[string]string{}, NearRatio: 0.8, AllFiles: true,
	}
	if got := fmt.Sprintf("%+v", o.Ratelimit); got != fmt.Sprintf("%+v", want) {
		t.Errorf("defaults:\n%s, want\n%+v", got, want)
	}
	if o.XDS.FirstPause != 3*time.Second || o.XDS.LongestPause != time.Minute {
		t.Errorf("pauses of %v to %v", o.XDS.FirstPause, o.XDS.LongestPause)
	}
	if own := complete(t, environment{"GRPC_UDS": "/tmp/s", "CELLSERVER_GRPC_ADDR": "127.0.0.1:1"}); own.Doors.Envoy.Ratelimit.GRPCUnix != "" {
		t.Error("a socket in place of cellserver's own address")
	}
	gateway := complete(t, envoyGateway()).Doors.Envoy.Ratelimit
	if gateway.GRPCCert != "/certs/tls.crt" || gateway.GRPCKey != "/certs/tls.key" || gateway.GRPCClientCA != "" || gateway.AwaitsConfig ||
		!gateway.IgnoreDotFiles || gateway.MetricsAddr != ":19001" || gateway.MetricsPath != "/metrics" {
		t.Errorf("Envoy Gateway's: %+v", gateway)
	}
	all := complete(t, environment{
		"HOST": "127.0.0.1", "PORT": "1", "DEBUG_HOST": "", "DEBUG_PORT": "2", "GRPC_UDS": "/tmp/s", "CONFIG_TYPE": "GRPC_XDS_SOTW",
		"GRPC_SERVER_USE_TLS": "1", "GRPC_SERVER_TLS_CERT": "c", "GRPC_SERVER_TLS_KEY": "k", "GRPC_CLIENT_TLS_CACERT": "ca", "GRPC_CLIENT_TLS_SAN": "san",
		"NEAR_LIMIT_RATIO": "0.5", "LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_LIMIT_HEADER": "L", "SHADOW_MODE": "true", "QUOTA_MODE": "true",
		"MERGE_DOMAIN_CONFIG": "true", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "true", "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED": "true",
		"EXTRA_TAGS": "a-b:1,__c:2,9: x ", "USE_PROMETHEUS": "true", "PROMETHEUS_PATH": "/m", "GRPC_MAX_CONNECTION_AGE": "0",
		"GRPC_MAX_CONNECTION_AGE_GRACE": "5s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL": "1s", "DISABLE_STATS": "false",
	}).Doors.Envoy.Ratelimit
	want = settings.RatelimitOptions{
		On: true, HTTPAddr: "127.0.0.1:1", DebugAddr: ":2", GRPCUnix: "/tmp/s", GRPCCert: "c", GRPCKey: "k", GRPCClientCA: "ca", GRPCClientName: "san",
		MaxConnectionAgeGrace: 5 * time.Second, MetricsAddr: ":9090", MetricsPath: "/m", ExtraTags: map[string]string{"a_b": "1", "c": "2", "_9": " x "},
		NearRatio: 0.5, HeaderNames: [3]string{"L", "RateLimit-Remaining", "RateLimit-Reset"}, Shadow: true, Quota: true, StopsWhenOver: true,
		MergeDomains: true, AwaitsConfig: true, HealthyWithConfig: true, AllFiles: true,
	}
	if got := fmt.Sprintf("%+v", all); got != fmt.Sprintf("%+v", want) {
		t.Errorf("all:\n%s, want\n%+v", got, want)
	}
	if none := complete(t, environment{"NEAR_LIMIT_RATIO": "0", "USE_PROMETHEUS": "true", "DISABLE_STATS": "true"}).Doors.Envoy.Ratelimit; none.NearRatio <= 0 ||
		none.NearRatio > 1e-30 || none.MetricsAddr != "" {
		t.Errorf("a ratio of 0 is %v, the metrics at %q", none.NearRatio, none.MetricsAddr)
	}
}

// TestMistakes: each is one line, with the variable and what it takes, and without a password.
func TestMistakes(t *testing.T) {
	t.Parallel()
	redis := environment{"CELLSERVER_USE_REDIS": "true", "REDIS_URL": "redis:6379", "REDIS_SOCKET_TYPE": "tcp"}
	xds := environment{"CONFIG_TYPE": "GRPC_XDS_SOTW"}
	for _, tt := range []struct {
		env  environment
		want string
	}{
		{environment{"PORT": ""}, `PORT takes a whole number, such as 8080, or must be unset; got ""`},
		{environment{"GRPC_PORT": "tcp://10.0.0.1:8081"}, `GRPC_PORT takes a whole number, such as 8080; got "tcp://10.0.0.1:8081"`},
		{environment{"GRPC_PORT": "99999"}, `GRPC_PORT takes a port from 1 to 65535, such as 8081; got "99999"`},
		{environment{"SHADOW_MODE": "yes"}, `SHADOW_MODE takes true or false; got "yes"`},
		{environment{"USE_STATSD": ""}, `USE_STATSD takes true or false, or must be unset; got ""`},
		{environment{"GRPC_MAX_CONNECTION_AGE": "30"}, `GRPC_MAX_CONNECTION_AGE takes a time with its unit, such as 10s; got "30"`},
		{environment{"GRPC_MAX_CONNECTION_AGE": "-1s"}, `GRPC_MAX_CONNECTION_AGE takes a time of at least 0, such as 24h; got "-1s"`},
		{environment{"NEAR_LIMIT_RATIO": "80%"}, `NEAR_LIMIT_RATIO takes a number, such as 0.8; got "80%"`},
		{environment{"NEAR_LIMIT_RATIO": "NaN"}, `NEAR_LIMIT_RATIO takes a number, such as 0.8; got "NaN"`},
		{environment{"NEAR_LIMIT_RATIO": "-Inf"}, `got "-Inf"`},
		{environment{"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_RESET_HEADER": "a b"}, `LIMIT_RESET_HEADER takes a header's name, such as RateLimit-Limit; got "a b"`},
		{environment{"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_LIMIT_HEADER": "a\r\nset-cookie"}, "LIMIT_LIMIT_HEADER takes a header's name"},
		{environment{"EXTRA_TAGS": "a=1"}, `EXTRA_TAGS takes NAME:TEXT, separated by commas, without other colons; got "a=1"`},
		{environment{"EXTRA_TAGS": "a:b:c"}, `got "a:b:c"`},
		{environment{"EXTRA_TAGS": "domain:1"}, `EXTRA_TAGS takes names of labels other than domain and descriptor, which the series have; got "domain"`},
		{environment{"CONFIG_TYPE": "file"}, `CONFIG_TYPE takes FILE or GRPC_XDS_SOTW; got "file"`},
		{environment{"LOG_LEVEL": "loud"}, `LOG_LEVEL takes panic, fatal, error, warn, info, debug or trace; got "loud"`},
		{xds.and(environment{"CONFIG_GRPC_XDS_SERVER_URL": "unix:///s"}), `CONFIG_GRPC_XDS_SERVER_URL takes host:port, such as envoy-gateway:18001; got "unix:///s"`},
		{xds.and(environment{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "5"}), `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES takes a whole number from 1024`},
		{xds.and(environment{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "-1"}), `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES takes a whole number from 1024 to 1073741824, such as 4194304; got "-1"`},
		{xds.and(environment{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES": "4MiB"}), `XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES takes a whole number, such as 8080; got "4MiB"`},
		{xds.and(environment{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "grpc-x:1"}),
			`CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS takes NAME:TEXT, separated by commas, without other colons, each a header of HTTP/2; got "..."`},
		{xds.and(environment{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "authorization:Bearer 5EC:RET"}),
			`CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS takes NAME:TEXT, separated by commas, without other colons; got "..."`},
		{environment{"GRPC_SERVER_USE_TLS": "true"}, "GRPC_SERVER_USE_TLS requires GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY; set both"},
		{environment{"USE_PROMETHEUS": "true", "PROMETHEUS_ADDR": "9090"}, `PROMETHEUS_ADDR takes host:port, such as :9090; got "9090"`},
		{environment{"USE_PROMETHEUS": "true", "PROMETHEUS_PATH": "metrics"}, `PROMETHEUS_PATH takes a path, such as /metrics; got "metrics"`},
		{environment{"BACKEND_TYPE": "disk"}, `BACKEND_TYPE takes redis; got "disk"`},
		{environment{"CELLSERVER_USE_REDIS": "yes"}, `CELLSERVER_USE_REDIS takes true or false; got "yes"`},
		{environment{"CELLSERVER_USE_REDIS": "true"}, "CELLSERVER_USE_REDIS requires REDIS_URL"},
		{environment{"CELLSERVER_USE_REDIS": "true", "REDIS_URL": "/var/run/redis.sock"}, "set REDIS_SOCKET_TYPE=tcp"},
		{redis.and(environment{"REDIS_URL": "redis://:secret@"}), "REDIS_URL must be host:port"},
		{redis.and(environment{"REDIS_URL": "secret@a:1"}), "REDIS_URL must be host:port"},
		{redis.and(environment{"REDIS_URL": "a:1,b:2"}), "REDIS_URL has several servers"},
		{redis.and(environment{"REDIS_TYPE": "ring"}), `REDIS_TYPE takes SINGLE, CLUSTER or SENTINEL; got "ring"`},
		{redis.and(environment{"REDIS_TYPE": "SENTINEL"}), "REDIS_URL must have the master's name and the sentinels"},
		{redis.and(environment{"REDIS_PERSECOND": "true"}), "REDIS_PERSECOND has no counterpart"},
		{redis.and(environment{"REDIS_SENTINEL_AUTH": "secret"}), "REDIS_SENTINEL_AUTH has no counterpart"},
		{redis.and(environment{"REDIS_TLS": "true", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION": "true"}), "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION has no counterpart"},
		{environment{"CELLSERVER_MAXCLIENTS": "many"}, `CELLSERVER_MAXCLIENTS takes a whole number`},
	} {
		err := Complete(&settings.Options{}, tt.env.lookup)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, want %s", tt.env, err, tt.want)
		}
	}
	several := Complete(&settings.Options{}, environment{"PORT": "x", "QUOTA_MODE": "x"}.lookup)
	if several == nil || strings.Count(several.Error(), "\n") != 1 {
		t.Errorf("two mistakes: %v", several)
	}
}

// TestWarnings: what is set and does nothing is one of them.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const without = "variables of envoyproxy/ratelimit that have no counterpart here have no effect: "
	const memory = "each replica counts alone; n replicas allow n times the limit"
	for _, tt := range []struct {
		env  environment
		want []string
	}{
		{nil, nil},
		{environment{"USE_STATSD": "false", "TRACING_ENABLED": "false", "STATSD_PORT": "8125", "MEMCACHE_HOST_PORT": ""}, nil},
		{environment{"USE_STATSD": "true", "TRACING_ENABLED": "1", "MEMCACHE_HOST_PORT": "m:1", "LOCAL_CACHE_SIZE_IN_BYTES": "9"},
			[]string{without + "USE_STATSD LOCAL_CACHE_SIZE_IN_BYTES MEMCACHE_HOST_PORT TRACING_ENABLED"}},
		{envoyGateway(), []string{memory, without + "GRPC_SERVER_TLS_CA_CERT PROMETHEUS_MAPPER_YAML"}},
		{environment{"REDIS_URL": "redis:6379"}, []string{memory}},
		{environment{"BACKEND_TYPE": "memcache"}, []string{memory}},
		{environment{"REDIS_URL": "redis:6379", "CELLSERVER_STORE": "redis://there:1"}, nil},
		{environment{"REDIS_URL": "redis:6379", "REDIS_SOCKET_TYPE": "tcp", "CELLSERVER_USE_REDIS": "true"}, nil},
		{environment{"GRPC_SERVER_USE_TLS": "1", "GRPC_SERVER_TLS_CERT": "c", "GRPC_SERVER_TLS_KEY": "k", "GRPC_CLIENT_TLS_SAN": "san"},
			[]string{"GRPC_CLIENT_TLS_SAN has no effect"}},
	} {
		got := complete(t, tt.env).Doors.Envoy.Ratelimit.Warnings
		if len(got) != len(tt.want) {
			t.Errorf("%v: %q", tt.env, got)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%v: %q, want %q", tt.env, got[i], want)
			}
		}
	}
}

// TestOrigins: errors about a setting name the variable that sets it.
func TestOrigins(t *testing.T) {
	t.Parallel()
	o := complete(t, environment{"RUNTIME_ROOT": "/data", "LOG_LEVEL": "debug", "CELLSERVER_LOG_LEVEL": "info"})
	for flag, want := range map[string]string{"envoy-config": "RUNTIME_ROOT: envoy-config", "log-level": "CELLSERVER_LOG_LEVEL", "addr": "--addr"} {
		if got := o.From.Of(flag); got != want {
			t.Errorf("%s is from %q, want %q", flag, got, want)
		}
	}
}

// TestOwnEnviron: CELLSERVER_USE_REDIS is known here, and elsewhere unknown.
func TestOwnEnviron(t *testing.T) {
	t.Parallel()
	environ := []string{"CELLSERVER_USE_REDIS=true", "CELLSERVER_ADDR=:1"}
	if got := OwnEnviron(complete(t, nil), environ); !slices.Equal(got, environ[1:]) {
		t.Errorf("%q", got)
	}
	if got := OwnEnviron(&settings.Options{}, environ); !slices.Equal(got, environ) {
		t.Errorf("%q", got)
	}
}

// TestImageSettings: the Dockerfile's are those that are hidden here.
func TestImageSettings(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var line []string
	for _, name := range slices.Sorted(maps.Keys(imageSettings())) {
		line = append(line, name+"="+imageSettings()[name])
	}
	if want := "\nENV " + strings.Join(line, " ") + "\n"; !strings.Contains(string(b), want) {
		t.Errorf("the Dockerfile has no line %q", want)
	}
}

// table is the table of docs/RATELIMIT.md.
func table() string {
	var b strings.Builder
	b.WriteString("| variable | default | here |\n| --- | --- | --- |\n")
	var without []string
	for _, v := range variables() {
		if v.does == "" {
			without = append(without, "`"+v.name+"`")
			continue
		}
		initial := ""
		if v.initial != "" {
			initial = "`" + v.initial + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.name, initial, v.does)
	}
	return b.String() + "\nThese do nothing: " + strings.Join(without, ", ") + ".\n"
}

// TestTable: docs/RATELIMIT.md has all variables. UPDATE_DOCS=1 writes them.
func TestTable(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../../docs/RATELIMIT.md", "<!-- variables: UPDATE_DOCS=1 go test ./internal/app/ratelimit -->\n", "<!-- end of variables -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the variables", path)
	}
	text := before + begin + "\n" + table() + "\n" + end + after
	if text == string(b) {
		return
	}
	if os.Getenv("UPDATE_DOCS") == "" {
		t.Fatalf("%s has other variables; UPDATE_DOCS=1 go test ./internal/app/ratelimit", path)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
