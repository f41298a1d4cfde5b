package main

import (
	"fmt"
	"os"
	"strings"
)

const head = `# Libraries

Give the library this server's address in place of the Redis's, as in ` + "`redis://127.0.0.1:6380`" + `, and change nothing else.
[MIGRATION.md](MIGRATION.md#from-a-library) has a whole program, and what to do then.

` + "`make clients`" + ` writes this page: it runs each library and gateway, unmodified, on redis-server and on cellserver, and
compares what they see: each decision, what remains, the headers, the end of a window, resets. What it cannot
install (from APISIX on) is replayed: the same commands, with scripts of the same shape. The programs are in
[lab/clients/libraries](../lab/clients/libraries/README.md).

What keeps lists, hashes or sorted sets is refused with an error that says what to send instead; so is every
value over ` + "`--store`" + `, as the Redis is there.

**Traefik's own ` + "`rateLimit` with `redis`" + `** keeps its token bucket in a hash, by a script with ` + "`HGETALL` and `HSET`" + `, so it does
not run here. The script is answered

` + "```text" + `
ERR cellserver keeps limits, not hashes: CL.THROTTLE key max_burst count period is a funnel or token bucket in one call; see cellserver's docs/RECIPES.md#hashes
` + "```" + `

and Traefik answers every request with 500, ` + "`Could not insert/update bucket`" + `. Use its ` + "`forwardAuth`" + ` instead, as
[dynamic.yml](../deploy/traefik/dynamic.yml) does: Traefik asks cellserver [over HTTP](HTTP.md#behind-a-proxy), and a limit has
a name, headers and a page.

The libraries' own suites, where they need a Redis, were run by hand with the same results on both servers:
redis_rate, throttled's goredisstore.v9, ulule/limiter's store, httprate-redis, rueidislimiter, 100 tests of
rate-limiter-flexible, 16 of @fastify/rate-limit, and rack-attack's with each Redis store and reset.

| library, part | version | sends | with 0.2 | now | with ` + "`--require-ttl`" + ` |
| --- | --- | --- | --- | --- | --- |
`

const failing = `
## When the server fails

A library decides what an error does to a request, also an error that says what to send instead. Here nothing
listens on the server's port. From APISIX on, the outcome is by the source.

| library | without a server | to choose |
| --- | --- | --- |
`

// unversioned stands for a version in comparisons: versions may differ between machines.
const unversioned = "*"

// pageOf returns the page for these rows.
func pageOf(rows []row) string {
	page := new(strings.Builder)
	page.WriteString(head)
	last := ""
	for _, r := range rows {
		if r.part == gone {
			continue
		}
		lib, _ := libraryNamed(r.library)
		if r.library == last {
			lib.sends, lib.before = "", "" // once is enough
		}
		last = r.library
		fmt.Fprintf(page, "| %s: %s | %s | %s | %s | %s | %s |\n",
			r.library, r.part, r.version, lib.sends, lib.before, r.cell, r.strict)
	}
	page.WriteString(failing)
	for _, lib := range libraries() {
		outcome := lib.fails
		for _, r := range rows {
			if r.part == gone && r.library == lib.name {
				outcome = r.cell
			}
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", lib.name, outcome, lib.choice)
	}
	return page.String()
}

// compare returns an error if the page in a file has other lines, apart from versions.
func compare(file, page string) error {
	was, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the page, which make clients writes: %w", err)
	}
	before, after := withoutVersions(string(was)), withoutVersions(page)
	for i := range max(len(before), len(after)) {
		if at(before, i) != at(after, i) {
			return fmt.Errorf("%s is out of date, run make clients: line %d is %q, the page has %q",
				file, i+1, at(after, i), at(before, i))
		}
	}
	return nil
}

// withoutVersions returns a page's lines; in its first table the second column is no version.
func withoutVersions(page string) []string {
	lines := strings.Split(page, "\n")
	const columns = 8 // with the empty ones before and after the bars
	for i, line := range lines {
		if fields := strings.Split(line, "|"); len(fields) == columns {
			fields[2] = unversioned
			lines[i] = strings.Join(fields, "|")
		}
	}
	return lines
}
