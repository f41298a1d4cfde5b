package main

// What libraries did on cellserver 0.2, as seen.
const (
	allFail    = "every call fails"
	all500     = "500 to every request"
	allRejects = "every call rejects"
)

// libraries returns what the page says of each library, in its order.
func libraries() []library {
	return append(append(goLibraries(), nodeLibraries()...), append(otherLibraries(), replayed()...)...)
}

func goLibraries() []library {
	return []library{
		{
			name: "redis_rate", sends: "EVALSHA, EVAL: TIME, GET, SET EX", before: allFail,
			choice: "the caller's: `Allow` returns the error",
		},
		{
			name: "throttled", sends: "TIME, GET, SETNX, EXPIRE; EVAL: GET, SETEX",
			before: "the first request of a key passes, then 500", endless: []string{"middleware"},
			choice: "`Error` of the middleware; by default 500",
		},
		{
			name: "ulule/limiter", sends: "SCRIPT LOAD; EVALSHA: INCRBY, PEXPIRE, PTTL, GET; DEL",
			before: "the middleware panics",
			choice: "`WithErrorHandler`; by default it panics",
		},
		{
			name: "httprate-redis", sends: "MULTI, INCRBY, EXPIRE, EXEC; MGET",
			before: "counts in each process",
			choice: "counts in the process by default; `FallbackDisabled: true` answers 428, or as " +
				"`WithErrorHandler` does",
		},
		{
			name: "rueidislimiter", sends: "EVALSHA, EVAL: GET, SET PXAT, INCRBY", before: allFail,
			choice: "the caller's: `Allow` returns the error",
		},
	}
}

func nodeLibraries() []library {
	return []library{
		{
			name: "rate-limiter-flexible", before: allRejects,
			endless: []string{"duration: 0"},
			sends:   "EVALSHA, EVAL: SET EX NX, INCRBY, PTTL; MULTI, GET, SET, PTTL, EXEC; DEL",
			choice:  "rejects with an Error; with `insuranceLimiter`, that limiter decides",
		},
		{
			name: "rate-limit-redis", before: all500,
			sends:  "SCRIPT LOAD; EVALSHA: PTTL, SET PX, INCR, GET; DECR, DEL",
			choice: "500 by default; `passOnStoreError: true` allows",
		},
		{
			name: "@fastify/rate-limit", sends: "EVALSHA, EVAL: INCR, PEXPIRE, PTTL", before: all500,
			choice: "500 by default; `skipOnError: true` allows",
		},
		{
			name: "@nest-lab/throttler-storage-redis", sends: "EVAL: INCR, PTTL, PEXPIRE, GET, SET PX, DEL",
			before: "every request fails",
			choice: "the guard passes the error on: 500",
		},
	}
}

func otherLibraries() []library {
	return []library{
		{
			name: "Flask-Limiter", before: all500, refuses: []string{"moving-window", "Limiter.reset()"},
			endless: []string{"fixed-window-elastic-expiry"},
			sends:   "EVALSHA, SCRIPT LOAD: INCRBY, EXPIRE; GET, TTL, DEL; moving window: lists",
			choice: "500 by default; **`swallow_errors=True` (`RATELIMIT_SWALLOW_ERRORS`) allows everything**, " +
				"also if the server refuses the strategy; `in_memory_fallback_enabled=True` counts in the process",
		},
		{
			name: "limits", sends: "the same", before: allFail, refuses: []string{"MovingWindowRateLimiter"},
			choice: "the caller's: `hit` raises",
		},
		{
			name: "django-redis", sends: "SET PX NX; EVAL: EXISTS, INCRBY; GET, DEL", before: allFail,
			choice: "raises by default, which django-ratelimit passes on; with `IGNORE_EXCEPTIONS` it counts nothing, " +
				"and django-ratelimit limits all, or **with `RATELIMIT_FAIL_OPEN` allows all**",
		},
		{
			name: "rack-attack", sends: "INCRBY, EXPIRE; GET, SET PX, SETEX, SCAN, DEL",
			endless: []string{"with redis-rb"},
			before:  "redis-rb: every request fails; **RedisCacheStore: all are allowed, silently**",
			choice: "**allows everything while it has no connection**; RedisCacheStore also on every other error, " +
				"unless its `error_handler` raises",
		},
	}
}

// replayed returns the libraries of the streams. What they do without a server is from their source.
func replayed() []library {
	return []library{
		{
			name: "APISIX", before: all500, refuses: []string{"limit-req", "limit-conn"},
			sends: "EVALSHA, EVAL: PTTL, SET EX, INCRBY, GET; limit-req: hashes; limit-conn: sorted sets",
			fails: "500", choice: "500 by default; `allow_degradation: true` allows",
		},
		{
			name: "Bucket4j", sends: "GET; EVAL: SET PX NX, PSETEX; DEL", before: allFail,
			endless: []string{"without one"},
			fails:   "an exception", choice: "the caller's",
		},
		{
			name: "django-ratelimit", sends: "SET EX NX, EXISTS, INCRBY, GET", before: allFail,
			fails: "an exception", choice: "the cache's; see django-redis",
		},
		{
			name: "Kong", before: "**all are allowed, silently**", sends: "EVAL: INCR, EXPIRE; EXISTS, INCRBY, EXPIREAT",
			fails: "allowed", choice: "**`fault_tolerant: true`, the default, allows**; `false` answers 500",
		},
		{
			name: "Laravel", before: allFail, refuses: []string{"Redis::throttle"},
			sends: "EVAL: EXISTS, SETEX; INCRBY, GET, SETEX, DEL; funnel: MGET, SET EX; throttle: hashes",
			fails: "an exception", choice: "the exception answers 500",
		},
		{
			name: "limits 5", sends: "EVALSHA: PTTL, RENAME, SET PX, GET, EXISTS, INCRBY", before: allFail,
			fails: "an error", choice: "as limits and Flask-Limiter",
		},
		{
			name: "LiteLLM", before: "counts in each process",
			refuses: []string{"max_parallel_requests", "requests and tokens, all or nothing"},
			endless: []string{"spend"},
			sends:   "EVALSHA: GET, SET, EXPIRE, INCR, INCRBY, INCRBYFLOAT, TTL, TIME, DEL; parallel: sorted sets",
			fails:   "counts in each process", choice: "none: it logs a warning and counts in the process",
		},
		{
			name: "Spring Cloud Gateway", before: "**all are allowed, silently**", sends: "EVALSHA, EVAL: TIME, GET, SETEX",
			fails: "allowed", choice: "**none: it logs the error and allows**",
		},
		{
			name: "Traefik", before: all500, refuses: []string{"rateLimit with redis"},
			sends: "EVALSHA, EVAL: HGETALL, HSET, EXPIRE",
			fails: "500", choice: "none: it logs the error and answers 500",
		},
	}
}
