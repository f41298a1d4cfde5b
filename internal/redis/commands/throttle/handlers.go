// Package throttle is the commands of limiters that are not decided in batches: those that reserve, wait, fill, look or
// name limits. Its handlers are safe for concurrent use.
package throttle

import (
	"log/slog"
	"maps"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
)

// Config is what the commands need.
type Config struct {
	Reading funnel.Reading // of max_burst
	Limits  *namedlimit.Registry
	Log     *slog.Logger
}

// Handlers returns the commands by their full names.
func Handlers(k Config) map[string]execute.Handler {
	all := map[string]execute.Handler{}
	for _, family := range []map[string]execute.Handler{
		k.reserving(),
		k.blocking(),
		buckets(),
		k.looks(),
		k.named(),
	} {
		maps.Copy(all, family)
	}
	return all
}

// readFunnel reads as many numbers as there is room for, of which the first are max_burst, count and period.
func (k Config) readFunnel(n []int64, args [][]byte) (funnel.Limit, error) {
	if err := argument.Numbers(n, args); err != nil {
		return funnel.Limit{}, err
	}
	return funnel.NewLimit(k.Reading, n[0], n[1], n[2])
}

// reserving are the commands of reservations, of holders, and of several funnels at once.
func (k Config) reserving() map[string]execute.Handler {
	plain := execute.Plain
	return map[string]execute.Handler{
		"cl.reserve":             plain(k.reserve),
		"cl.commit":              plain(commit),
		"cl.mthrottle":           plain(k.throttleTogether),
		"cl.concurrency|acquire": plain(acquire),
		"cl.concurrency|release": plain(release),
		"cl.concurrency|renew":   plain(renew),
		"cl.concurrency|len":     plain(holders),
	}
}
