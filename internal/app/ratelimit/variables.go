package ratelimit

// variable is one of envoyproxy/ratelimit's, by which cellserver is started in its place.
type variable struct {
	name, initial string // "" for no default
	kind          kind
	does          string // here; "" for nothing
}

// variables are those of src/settings/settings.go of envoyproxy/ratelimit at f2fb157, in its order.
func variables() []variable {
	var all []variable
	for _, group := range [][]variable{listening(), configuration(), statistics(), decisions(), redis(), others()} {
		all = append(all, group...)
	}
	return all
}

func listening() []variable {
	return []variable{
		{"HOST", "0.0.0.0", text, "address of `/healthcheck` and `/json`, over HTTP"},
		{"PORT", "8080", whole, "its port"},
		{"DEBUG_HOST", "0.0.0.0", text, "address of `/rlconfig`"},
		{"DEBUG_PORT", "6070", whole, "its port"},
		{"GRPC_UDS", "", text, "path of a unix socket in place of `GRPC_HOST` and `GRPC_PORT`"},
		{"GRPC_HOST", "0.0.0.0", text, "address of the rate limit service: `--grpc-addr`"},
		{"GRPC_PORT", "8081", whole, "its port"},
		{"GRPC_MAX_CONNECTION_AGE", "24h", period, "time after which a connection is told to close; 0 for never"},
		{"GRPC_MAX_CONNECTION_AGE_GRACE", "1h", period, "time that its calls then have to end"},
		{"GRPC_SERVER_USE_TLS", "false", truth, "TLS for the rate limit service"},
		{"GRPC_SERVER_TLS_CERT", "", text, "PEM file with its certificate; a changed file is read again"},
		{"GRPC_SERVER_TLS_KEY", "", text, "PEM file with that certificate's private key"},
		{"GRPC_SERVER_TLS_CA_CERT", "", text, ""}, // Envoy Gateway sets it
		{"GRPC_CLIENT_TLS_CACERT", "", text, "PEM file with the authorities of client certificates, without the system's; one is then required"},
		{"GRPC_CLIENT_TLS_SAN", "", text, "DNS name that a client certificate must have"},
		{"LOG_LEVEL", "WARN", text, "`--log-level`: `panic` and `fatal` are `error`, `trace` is `debug`"},
		{"LOG_FORMAT", "text", text, "`--log-format`: `json`, else `text`"},
	}
}

func configuration() []variable {
	return []variable{
		{"CONFIG_TYPE", "FILE", text, "`FILE` for `--envoy-config`, `GRPC_XDS_SOTW` for `--envoy-xds`"},
		{"FORCE_START_WITHOUT_INITIAL_CONFIG", "false", truth, "with xDS: listens before the first configuration has come"},
		{"CONFIG_GRPC_XDS_NODE_ID", "default", text, "`--envoy-xds-node-id`"},
		{"CONFIG_GRPC_XDS_NODE_METADATA", "", text, "`--envoy-xds-node-metadata`: `k=v,k2=v2`"},
		{"CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000", text, "`--envoy-xds`"},
		{"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "3s", period, "first pause before it connects again, unless `XDS_CLIENT_BACKOFF_INITIAL_INTERVAL` is shorter"},
		{"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "", pairs, "`--envoy-xds-headers`: `k:v,k2:v2`"},
		{"CONFIG_GRPC_XDS_SERVER_USE_TLS", "false", truth, "`--envoy-xds-tls`"},
		{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "", text, "`--envoy-xds-tls-cert`"},
		{"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "", text, "`--envoy-xds-tls-key`"},
		{"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "", text, "`--envoy-xds-tls-ca`, without the system's"},
		{"CONFIG_GRPC_XDS_SERVER_TLS_SAN", "", text, "`--envoy-xds-tls-name`"},
		{"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", "10s", period, "see `CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL`; pauses double"},
		{"XDS_CLIENT_BACKOFF_MAX_INTERVAL", "60s", period, "longest pause"},
		{"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "0.5", fraction64, ""},
		{"XDS_CLIENT_BACKOFF_JITTER", "true", truth, ""}, // always
		{"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", "", whole, "`--envoy-xds-max-message-bytes`; unset or 0 for 4 MiB, 1 GiB at most"},
	}
}

func statistics() []variable {
	return []variable{
		{"USE_DOG_STATSD", "false", truth, ""},
		{"USE_DOG_STATSD_MOGRIFIERS", "", words, ""},
		{"USE_STATSD", "true", truth, ""},
		{"STATSD_HOST", "localhost", text, ""},
		{"STATSD_PORT", "8125", whole, ""},
		{"EXTRA_TAGS", "", pairs, "labels of the series `ratelimit_*`: `k:v,k2:v2`"},
		{"STATS_FLUSH_INTERVAL", "10s", period, ""},
		{"DISABLE_STATS", "false", truth, "leaves `PROMETHEUS_ADDR` closed"},
		{"USE_PROMETHEUS", "false", truth, "metrics at `PROMETHEUS_ADDR`, too"},
		{"PROMETHEUS_ADDR", ":9090", text, "address of the metrics, without the live page"},
		{"PROMETHEUS_PATH", "/metrics", text, "their path, beside `/metrics`"},
		{"PROMETHEUS_MAPPER_YAML", "", text, ""},
		{"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", "false", truth, ""},
	}
}

func decisions() []variable {
	return []variable{
		{"RUNTIME_ROOT", "/srv/runtime_data/current", text, "files are in `RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY` and below it, whatever their extension; a missing directory is an empty configuration"},
		{"RUNTIME_SUBDIRECTORY", "", text, "see `RUNTIME_ROOT`"},
		{"RUNTIME_APPDIRECTORY", "config", text, "see `RUNTIME_ROOT`"},
		{"RUNTIME_IGNOREDOTFILES", "false", truth, "skips files and directories that begin with a dot; those with two are always skipped"},
		{"RUNTIME_WATCH_ROOT", "true", truth, ""}, // files and links are read again in any case
		{"EXPIRATION_JITTER_MAX_SECONDS", "300", whole64, ""},
		{"LOCAL_CACHE_SIZE_IN_BYTES", "0", whole, ""},
		{"NEAR_LIMIT_RATIO", "0.8", fraction32, "part of a limit beyond which hits are near it"},
		{"CACHE_KEY_PREFIX", "", text, "`--key-prefix`, with the store behind it"},
		{"BACKEND_TYPE", "redis", text, "`memcache` has no counterpart"},
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false", truth, "requests that one limit denies charge none"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED", "false", truth, "`--envoy-headers`"},
		{"LIMIT_LIMIT_HEADER", "RateLimit-Limit", text, "name of that header"},
		{"LIMIT_REMAINING_HEADER", "RateLimit-Remaining", text, "name of that header"},
		{"LIMIT_RESET_HEADER", "RateLimit-Reset", text, "name of that header"},
		{"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "false", truth, "healthy only while there is a domain"},
	}
}

func redis() []variable {
	return []variable{
		{"REDIS_SOCKET_TYPE", "unix", text, "must be `tcp`, unless a cluster or sentinels are named"},
		{"REDIS_TYPE", "SINGLE", text, "`SINGLE`, `CLUSTER` or `SENTINEL`"},
		{"REDIS_URL", "/var/run/nutcracker/ratelimit.sock", text, "with `CELLSERVER_USE_REDIS=true` the `--store`, else nothing"},
		{"REDIS_POOL_SIZE", "10", whole, ""},
		{"REDIS_AUTH", "", text, "`password` or `user:password` of the store"},
		{"REDIS_TLS", "false", truth, "TLS to the store"},
		{"REDIS_TLS_CLIENT_CERT", "", text, "`--store-tls-cert`"},
		{"REDIS_TLS_CLIENT_KEY", "", text, "`--store-tls-key`"},
		{"REDIS_TLS_CACERT", "", text, "`--store-tls-ca`, without the system's"},
		{"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "false", truth, "requires `CELLSERVER_STORE_TLS_SERVER_NAME`"},
		{"REDIS_PIPELINE_WINDOW", "0", period, ""},
		{"REDIS_PIPELINE_LIMIT", "0", whole, ""},
		{"REDIS_CLUSTER_PIPELINE_PARALLELISM", "1", whole, ""},
		{"REDIS_PERSECOND", "false", truth, "refused: there is one store"},
		{"REDIS_PERSECOND_SOCKET_TYPE", "unix", text, ""},
		{"REDIS_PERSECOND_TYPE", "SINGLE", text, ""},
		{"REDIS_PERSECOND_URL", "/var/run/nutcracker/ratelimitpersecond.sock", text, ""},
		{"REDIS_PERSECOND_POOL_SIZE", "10", whole, ""},
		{"REDIS_PERSECOND_AUTH", "", text, ""},
		{"REDIS_PERSECOND_TLS", "false", truth, ""},
		{"REDIS_SENTINEL_AUTH", "", text, "requires `CELLSERVER_STORE_SENTINEL_PASSWORD_FILE`"},
		{"REDIS_PERSECOND_SENTINEL_AUTH", "", text, ""},
		{"REDIS_PERSECOND_PIPELINE_WINDOW", "0", period, ""},
		{"REDIS_PERSECOND_PIPELINE_LIMIT", "0", whole, ""},
		{"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "1", whole, ""},
		{"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", "false", truth, "healthy only while the store answers, else once it has answered"},
		{"REDIS_TIMEOUT", "10s", period, ""},
		{"REDIS_PERSECOND_TIMEOUT", "10s", period, ""},
		{"REDIS_POOL_ON_EMPTY_BEHAVIOR", "WAIT", text, ""},
		{"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "WAIT", text, ""},
		{"REDIS_STARTUP_INITIAL_INTERVAL", "1s", period, ""},
		{"REDIS_STARTUP_MAX_INTERVAL", "30s", period, ""},
		{"REDIS_STARTUP_MAX_ELAPSED_TIME", "0", period, ""},
	}
}

func others() []variable {
	return []variable{
		{"MEMCACHE_HOST_PORT", "", words, ""},
		{"MEMCACHE_MAX_IDLE_CONNS", "2", whole, ""},
		{"MEMCACHE_SRV", "", text, ""},
		{"MEMCACHE_SRV_REFRESH", "0", period, ""},
		{"MEMCACHE_TLS", "false", truth, ""},
		{"MEMCACHE_TLS_CLIENT_CERT", "", text, ""},
		{"MEMCACHE_TLS_CLIENT_KEY", "", text, ""},
		{"MEMCACHE_TLS_CACERT", "", text, ""},
		{"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "false", truth, ""},
		{"SHADOW_MODE", "false", truth, "`shadow_mode` of all limits"},
		{"QUOTA_MODE", "false", truth, "`quota_mode` of all limits"},
		{"RESPONSE_DYNAMIC_METADATA", "false", truth, "`--envoy-metadata`"},
		{"MERGE_DOMAIN_CONFIG", "false", truth, "several files, or resources, may have the same domain"},
		{"TRACING_ENABLED", "false", truth, ""},
		{"TRACING_SERVICE_NAME", "RateLimit", text, ""},
		{"TRACING_SERVICE_NAMESPACE", "", text, ""},
		{"TRACING_SERVICE_INSTANCE_ID", "", text, ""},
		{"TRACING_EXPORTER_PROTOCOL", "http", text, ""},
		{"TRACING_SAMPLING_RATE", "1", fraction64, ""},
	}
}
