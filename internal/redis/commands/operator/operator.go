// Package operator has the commands that show the server at work: SLOWLOG, LATENCY, MONITOR and CL.TOP. Its
// handlers are safe for concurrent use.
package operator

import (
	"maps"
	"slices"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
)

type handlers struct{ execute.Config }

// Handlers returns the handlers by their commands' full names.
func Handlers(c execute.Config) map[string]execute.Handler {
	k := handlers{c}
	plain := execute.Plain
	return map[string]execute.Handler{
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
