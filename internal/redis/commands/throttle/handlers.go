// Package throttle has the limiter commands that are not decided in batches: those that reserve, wait, fill, look or name
// limits. Its handlers are safe for concurrent use.
package throttle

import (
	"cellserver/internal/funnel"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
)

type handlers struct{ execute.Config }

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config) map[string]execute.Handler {
	k := handlers{c}
	plain, onConnection := execute.Plain, execute.OnConnection
	return map[string]execute.Handler{
		"cl.bthrottle":           plain(k.throttleBlocking),
		"cl.bucket|add":          plain(bucketAdd),
		"cl.bucket|reset":        plain(bucketReset),
		"cl.bucket|len":          plain(bucketLen),
		"cl.peek":                plain(k.peek),
		"cl.reserve":             plain(k.reserve),
		"cl.commit":              plain(commit),
		"cl.mthrottle":           plain(k.throttleTogether),
		"cl.concurrency|acquire": plain(acquire),
		"cl.concurrency|release": plain(release),
		"cl.concurrency|renew":   plain(renew),
		"cl.concurrency|len":     plain(holders),
		"cl.limit|del":           onConnection(k.limitDel),
		"cl.limit|get":           plain(k.limitGet),
		"cl.limit|list":          plain(k.limitList),
		"cl.limit|reload":        plain(k.limitReload),
		"cl.limit|set":           onConnection(k.limitSet),
	}
}

// readFunnel fills n from args; its first numbers are max_burst, count and period.
func (k handlers) readFunnel(n []int64, args [][]byte) (funnel.Limit, error) {
	if err := argument.Numbers(n, args); err != nil {
		return funnel.Limit{}, err
	}
	return funnel.NewLimit(k.Reading, n[0], n[1], n[2])
}
