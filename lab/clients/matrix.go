package main

import (
	"cellserver/lab/clients/internal/table"
)

// checks returns the checks that the programs report, in the page's order.
func checks() []table.Check {
	return []table.Check{
		{Name: "url", Does: "connects by a URL with a password, and receives a reply"},
		{Name: "tls", Does: "connects by a rediss URL with the test's authority; without it, rejects the server's certificate"},
		{Name: "throttle", Does: "CL.THROTTLE, sent as an arbitrary command: exactly the five integers"},
		{Name: "pipeline", Does: "100 calls in one pipeline, answered in order"},
		{Name: "transaction", Does: "three calls between MULTI and EXEC"},
		{Name: "watch", Does: "a transaction on a watched key: aborted if another connection wrote the key, else executed"},
		{Name: "evalsha", Does: "CL.THROTTLE in a Lua script, by its hash, when the server does not have the script yet"},
		{Name: "eval", Does: "the same by the script's source"},
		{Name: "pool", Does: "8 workers with 100 calls each on one key: exactly as many are allowed as the limit says"},
		{Name: "wrong password", Does: "is refused, and the client reports it"},
		{Name: "database", Does: "a URL with /3: its keys are separate from those of database 0"},
		{Name: "scrape", Does: "the exporter has metrics of the server, its clients and its keys, and no errors in its log"},
		{Name: "cache", Does: "with client-side caching turned on, no value is read that another client has since changed: it is an error, or the client turns it off"},
		{Name: "increx", Does: "INCREX with each option: by the client's own methods, and of redis-py and redis-rb, whose packages here have none, as an arbitrary command"},
		{Name: "reconnect", Does: "the server restarts; the next call succeeds"},
	}
}

// client is a client in the matrix.
type client struct {
	name string // as in the page
	dir  string // of its program
	// needs are commands that succeed if the client is installed.
	needs []need
	// build are commands for the program's directory; in build and run, {out} is the file to build.
	build [][]string
	run   []string
	// checks are the names of the checks that it reports; if nil, all but scrape, cache only if caches and
	// increx only if increx.
	checks []string
	caches bool // if it is told to
	increx bool // if it has methods for it, in a later version if not in this
}

// need is a command that succeeds if Debian packages are installed.
type need struct {
	packages string
	argv     []string
}

func matrix() []client {
	node := []need{{"nodejs", []string{"node", "--version"}}, {"npm", []string{"npm", "--version"}}}
	install := [][]string{{"npm", "ci", "--prefer-offline", "--ignore-scripts", "--loglevel=error"}}
	goBuild := [][]string{{"go", "build", "-o", "{out}", "."}}
	return []client{
		{name: "go-redis (Go)", dir: "go-redis", build: goBuild, run: []string{"{out}"}, caches: true, increx: true},
		{name: "rueidis (Go)", dir: "go-rueidis", build: goBuild, run: []string{"{out}"}, caches: true, increx: true},
		{
			name: "redis-py (Python)", dir: "python-redis",
			needs:  []need{{"python3-redis", []string{"/usr/bin/python3", "-c", "import redis"}}},
			run:    []string{"/usr/bin/python3", "main.py"}, // Debian's, which has Debian's packages
			increx: true,
		},
		{name: "ioredis (Node)", dir: "node-ioredis", needs: node, build: install, run: []string{"node", "main.mjs"}, increx: true},
		{
			name: "node-redis (Node)", dir: "node-redis", needs: node, build: install, run: []string{"node", "main.mjs"},
			caches: true, increx: true,
		},
		{
			name: "phpredis (PHP)", dir: "php-phpredis",
			needs: []need{{"php-cli php-redis", []string{"php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"}}},
			run:   []string{"php", "main.php"},
		},
		{
			name: "redis-rb (Ruby)", dir: "ruby-redis",
			needs: []need{{"ruby-redis ruby-connection-pool", []string{"ruby", "-e", "require 'redis'; require 'connection_pool'"}}},
			run:   []string{"ruby", "main.rb"}, increx: true,
		},
		{
			name: "hiredis (C)", dir: "c-hiredis",
			needs: []need{
				{"gcc libc6-dev make", []string{"make", "--version"}},
				{"pkg-config libhiredis-dev", []string{"pkg-config", "--exists", "hiredis"}},
			},
			build: [][]string{{"make", "--silent", "--always-make", "OUT={out}"}},
			run:   []string{"{out}"},
		},
		{
			name: "prometheus-redis-exporter", dir: "redis-exporter",
			needs: []need{{"prometheus-redis-exporter", []string{"prometheus-redis-exporter", "--version"}}},
			build: goBuild, run: []string{"{out}"},
			checks: []string{"url", "tls", "scrape", "wrong password", "reconnect"},
		},
	}
}
