// Package operator has the commands that show the server at work: SLOWLOG, LATENCY, MONITOR, CL.TOP and
// CL.ENVOY. Its handlers are safe for concurrent use.
package operator

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"cellserver/internal/decide/topkeys"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

type handlers struct{ execute.Config }

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config) map[string]execute.Handler {
	k := handlers{c}
	plain := execute.Plain
	return map[string]execute.Handler{
		"cl.envoy|limits":   plain(k.envoyLimits),
		"cl.envoy|status":   plain(k.envoyStatus),
		"cl.top":            execute.Whole(k.top),
		"latency|histogram": plain(k.latencyHistogram),
		"latency|history":   plain(k.latencyHistory),
		"latency|latest":    plain(k.latencyLatest),
		"latency|reset":     plain(k.latencyReset),
		"monitor":           execute.OnConnection(monitor),
		"slowlog|get":       plain(k.slowlogGet),
		"slowlog|len":       plain(k.slowlogLen),
		"slowlog|reset":     plain(k.slowlogReset),
	}
}

func monitor(_ execute.Call, conn execute.Connection, _ [][]byte) error { return conn.Monitor() }

// slowlogGet is SLOWLOG GET [count].
func (k handlers) slowlogGet(c execute.Call, args [][]byte) error {
	n := int64(10)
	if len(args) > 3 {
		return reply.UnknownOrArity(args)
	}
	if len(args) == 3 {
		var ok bool
		if n, ok = resp.ParseInt(args[2]); !ok || n < -1 {
			return reply.Error("ERR count should be greater than or equal to -1")
		}
	}
	entries := k.Records.Slowlog.Latest(n)
	w := c.Reply()
	w.Array(len(entries))
	for _, e := range entries {
		w.Array(6)
		w.Int(e.ID)
		w.Int(e.UnixSec)
		w.Int(e.DurationUs)
		w.Strings(e.Args)
		w.BulkString(e.Addr)
		w.BulkString(e.Name)
	}
	return nil
}

func (k handlers) slowlogLen(c execute.Call, _ [][]byte) error {
	c.Reply().Int(int64(k.Records.Slowlog.Len()))
	return nil
}

func (k handlers) slowlogReset(c execute.Call, _ [][]byte) error {
	k.Records.Slowlog.Reset()
	c.Reply().OK()
	return nil
}

func (k handlers) latencyHistory(c execute.Call, args [][]byte) error {
	samples := k.Records.Latencies.All()[string(args[2])].Samples
	c.Reply().Array(len(samples))
	for _, sample := range samples {
		c.Reply().Array(2)
		c.Reply().Int(sample.UnixSec)
		c.Reply().Int(sample.Ms)
	}
	return nil
}

func (k handlers) latencyLatest(c execute.Call, _ [][]byte) error {
	all := k.Records.Latencies.All()
	w := c.Reply()
	w.Array(len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		last := v.Samples[len(v.Samples)-1]
		w.Array(4)
		w.BulkString(name)
		w.Int(last.UnixSec)
		w.Int(last.Ms)
		w.Int(v.WorstMs)
	}
	return nil
}

func (k handlers) latencyReset(c execute.Call, args [][]byte) error {
	if err := argument.CheckNames(args[2:]); err != nil {
		return err
	}
	var names []string
	for _, arg := range args[2:] {
		names = append(names, string(arg))
	}
	c.Reply().Int(int64(k.Records.Latencies.Reset(names)))
	return nil
}

// latencyHistogram is LATENCY HISTOGRAM [command ...]. Commands never called are left out.
func (k handlers) latencyHistogram(c execute.Call, args [][]byte) error {
	if err := argument.CheckNames(args[2:]); err != nil {
		return err
	}
	byTime := k.Records.ByTime()
	var found []*catalog.Command
	keep := func(command *catalog.Command) {
		if calls, _ := byTime[command.ID].Cumulative(); calls > 0 && !slices.Contains(found, command) {
			found = append(found, command)
		}
	}
	if len(args) == 2 {
		k.Catalog.Each(keep)
	}
	for _, name := range args[2:] {
		if command := k.Catalog.LookupShown(name); command != nil {
			keep(command)
			for _, sub := range command.Subs {
				keep(sub)
			}
		}
	}
	w := c.Reply()
	w.Map(len(found))
	for _, command := range found {
		calls, buckets := byTime[command.ID].Cumulative()
		w.BulkString(command.FullName())
		w.Map(2)
		w.BulkString("calls")
		w.Int(calls)
		w.BulkString("histogram_usec")
		w.Map(len(buckets))
		for _, b := range buckets {
			w.Int(b.MostUs)
			w.Int(b.Calls)
		}
	}
	return nil
}

// topCall is what CL.TOP [REQUESTED|LIMITED] [COUNT n] [WITHNAMES] asks for.
type topCall struct {
	ranking   topkeys.Ranking
	count     int64
	withNames bool
}

// top replies an array for each key, or a map WITHNAMES. Clients read arrays by position, also in RESP3,
// which many choose by themselves: so another number is only in the map.
func (k handlers) top(c execute.Call, _ store.Walker, args [][]byte) error {
	call, err := readTop(args[1:])
	if err != nil {
		return err
	}
	entries := k.Records.TopKeys.Top(call.ranking, c.Now(), int(call.count))
	c.Reply().Array(len(entries))
	for i := range entries {
		if call.withNames {
			replyNamed(c.Reply(), &entries[i])
		} else {
			replyInOrder(c.Reply(), &entries[i])
		}
	}
	return nil
}

// readTop also takes ASKED and DENIED, older names of the rankings.
func readTop(rest [][]byte) (call topCall, err error) {
	const byDefault = 10
	if len(rest) > 0 {
		switch glob.Fold(rest[0]) {
		case "requested", "asked":
			rest = rest[1:]
		case "limited", "denied":
			call.ranking, rest = topkeys.Limited, rest[1:]
		}
	}
	for len(rest) > 0 {
		switch word := glob.Fold(rest[0]); {
		case word == "withnames" && !call.withNames:
			call.withNames, rest = true, rest[1:]
		case word == "count" && len(rest) > 1 && call.count == 0:
			n, ok := resp.ParseInt(rest[1])
			if !ok || n < 1 || n > topkeys.Counters {
				return call, reply.Error("ERR COUNT must be from 1 to " + strconv.Itoa(topkeys.Counters))
			}
			call.count, rest = n, rest[2:]
		default:
			return call, reply.ErrSyntax
		}
	}
	call.count = cmp.Or(call.count, byDefault)
	return call, nil
}

func replyInOrder(w *resp.Writer, e *topkeys.Entry) {
	w.Array(5)
	w.BulkString(e.Name)
	w.Double(roundRate(e.CallsPerSecond))
	w.Double(roundShare(e.Share))
	w.Double(roundRate(e.Error))
	w.Int(int64(e.DB))
}

func replyNamed(w *resp.Writer, e *topkeys.Entry) {
	w.Map(8)
	w.Pair("key", e.Name)
	w.BulkString("key_is_cut")
	w.Bool(e.Cut)
	w.BulkString("database")
	w.Int(int64(e.DB))
	w.BulkString("share")
	w.Double(roundShare(e.Share))
	w.BulkString("calls_per_second")
	w.Double(roundRate(e.CallsPerSecond))
	w.BulkString("calls_per_second_error")
	w.Double(roundRate(e.Error))
	recent := func(name string, rate float64) {
		w.BulkString(name)
		if e.IsRecent {
			w.Double(roundRate(rate))
		} else {
			w.Null()
		}
	}
	recent("recent_calls_per_second", e.Recent)
	recent("recent_calls_per_second_error", e.RecentError)
}

func roundRate(perSecond float64) float64 { return math.Round(perSecond*1000) / 1000 }

func roundShare(x float64) float64 { return math.Round(x*10_000) / 10_000 }
