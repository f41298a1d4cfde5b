package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server sends commands at once and returns their replies, nil for null, or the first error.
type Server interface {
	Do(ctx context.Context, commands ...[]any) (replies []any, err error)
	Name() string
}

// sample is what a server said at a time.
type sample struct {
	at      time.Time // by the server's clock
	runID   string
	version string
	up      time.Duration

	clients, usedBytes, maxBytes int64
	allowed, limited, errors     int64

	keys     []hotKey     // of the ranking, the first has the highest rate
	limits   []namedLimit // by name
	noLimits string       // why they are unknown; "" if they are known
}

// hotKey is a key with calls per second; a rate is unknown, -1, if the key is not in the other ranking.
type hotKey struct {
	name           string
	db             int64
	calls, limited float64
	share          float64 // of the ranking
}

type namedLimit struct {
	name, policy                   string
	isShadow                       bool
	allowed, limited, shadow, near int64
}

const (
	maxKeys = 256 // of a ranking
	atOnce  = 100 // commands
)

// read asks a server. It requires INFO and CL.TOP; without rights to CL.LIMIT there are no limits.
func read(ctx context.Context, s Server, byLimited bool) (*sample, error) {
	replies, err := s.Do(ctx, []any{"INFO", "server", "clients", "memory", "stats"},
		[]any{"CL.TOP", "REQUESTED", "COUNT", maxKeys, "WITHNAMES"}, []any{"CL.TOP", "LIMITED", "COUNT", maxKeys, "WITHNAMES"})
	if err != nil {
		if strings.Contains(err.Error(), "syntax error") {
			err = fmt.Errorf("%w; it is older than 0.3.0, use its version of cellserver", err)
		}
		return nil, err
	}
	info := infoOf(replies[0])
	smp := &sample{
		at: time.UnixMicro(info.integer("server_time_usec")), runID: info.text("run_id"), version: info.text("cellserver_version"),
		up: time.Duration(info.integer("uptime_in_seconds")) * time.Second, clients: info.integer("connected_clients"),
		usedBytes: info.integer("used_memory_dataset"), maxBytes: info.integer("maxmemory_dataset"),
		allowed: info.integer("cell_allowed"), limited: info.integer("cell_denied"), errors: info.integer("total_error_replies"),
		keys: rank(replies[1], replies[2], byLimited),
	}
	var refusal redis.Error
	if smp.limits, err = readLimits(ctx, s); errors.As(err, &refusal) {
		smp.noLimits = err.Error()
		return smp, nil
	}
	return smp, err
}

// rank joins the two rankings by key, those of one of them in the order of their rates.
func rank(requested, limited any, byLimited bool) []hotKey {
	type id struct{ db, name string }
	first, second := entriesOf(requested), entriesOf(limited)
	if byLimited {
		first, second = second, first
	}
	other := map[id]float64{}
	for _, e := range second {
		other[id{e.text("database"), e.text("key")}] = e.rate()
	}
	keys := make([]hotKey, 0, len(first))
	for _, e := range first {
		k := hotKey{name: e.text("key"), db: e.integer("database"), share: e.number("share"), calls: e.rate(), limited: -1}
		if rate, ok := other[id{e.text("database"), k.name}]; ok {
			k.limited = rate
		}
		if byLimited {
			k.calls, k.limited = k.limited, k.calls
		}
		keys = append(keys, k)
	}
	slices.SortStableFunc(keys, func(a, b hotKey) int {
		if byLimited {
			return cmp.Compare(b.limited, a.limited)
		}
		return cmp.Compare(b.calls, a.calls)
	})
	return keys
}

func readLimits(ctx context.Context, s Server) ([]namedLimit, error) {
	replies, err := s.Do(ctx, []any{"CL.LIMIT", "LIST"})
	if err != nil {
		return nil, err
	}
	names, _ := replies[0].([]any)
	all := make([]namedLimit, 0, len(names))
	for some := range slices.Chunk(names, atOnce) {
		commands := make([][]any, 0, len(some))
		for _, name := range some {
			commands = append(commands, []any{"CL.LIMIT", "GET", name})
		}
		replies, err := s.Do(ctx, commands...)
		if err != nil {
			return nil, err
		}
		for _, reply := range replies {
			if f := fieldsOf(reply); f != nil { // else it was deleted meanwhile
				all = append(all, namedLimit{
					name: f.text("name"), policy: f.text("policy"), isShadow: f.integer("shadow") != 0, allowed: f.integer("allowed"),
					limited: f.integer("limited"), shadow: f.integer("shadow_limited"), near: f.integer("near"),
				})
			}
		}
	}
	return all, nil
}

// fields are names with values, from a map or from INFO.
type fields map[string]any

// fieldsOf returns nil for what is no map in RESP2.
func fieldsOf(reply any) fields {
	pairs, _ := reply.([]any)
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return nil
	}
	f := fields{}
	for i := 0; i < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			f[name] = pairs[i+1]
		}
	}
	return f
}

func entriesOf(reply any) (all []fields) {
	entries, _ := reply.([]any)
	for _, e := range entries {
		if f := fieldsOf(e); f != nil {
			all = append(all, f)
		}
	}
	return all
}

func infoOf(reply any) fields {
	f := fields{}
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

func (f fields) text(name string) string {
	switch v := f[name].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (f fields) number(name string) float64 {
	n, _ := strconv.ParseFloat(f.text(name), 64)
	return n
}

func (f fields) integer(name string) int64 {
	n, _ := strconv.ParseInt(f.text(name), 10, 64)
	return n
}

// rate returns an entry's calls per second: of the last ten seconds, or if these are too few, on average.
func (f fields) rate() float64 {
	if f["recent_calls_per_second"] != nil {
		return f.number("recent_calls_per_second")
	}
	return f.number("calls_per_second")
}
