package shard

import (
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/limitertest"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a mistake in this package
	}
	return v
}

// windowRule is the rule of a window of so many units in so many seconds.
func windowRule(kind limiter.Kind, maxCount, periodSec int64) limiter.Rule {
	if kind == limiter.SlidingWindow {
		return limiter.Rule{Kind: kind, Packed: must(window.NewExactLimit(funnel.Seconds, maxCount, periodSec)).Packed()}
	}
	return limiter.Rule{Kind: kind, Packed: must(window.NewLimit(funnel.Seconds, maxCount, periodSec)).Packed()}
}

// benchRules returns rules that mostly allow requests; the exact sliding window has about 100 records a key.
func benchRules(tb testing.TB, keys int) map[string]limiter.Rule {
	minute, hour := limit(tb, 1<<20, 1<<20, 60), limit(tb, 1<<20, 1, 3600)
	named := limitertest.Named(limiter.PlainRule(minute, 60*sec), limiter.PlainRule(hour, 3600*sec))
	mixed := limitertest.Named(limiter.PlainRule(minute, 60*sec), limiter.OtherRule(windowRule(limiter.FixedWindow, 1<<40, 3600), "w"))
	quota := limiter.Rule{Kind: limiter.Quota, Shared: limitertest.Calendar(1e18), Packed: limiter.Packed{1 << 40}}
	return map[string]limiter.Rule{
		"funnel":  limiter.OfFunnel(limit(tb, 1<<20, 1, 3600)),
		"fixed":   windowRule(limiter.FixedWindow, 1<<40, 3600),
		"approx":  windowRule(limiter.ApproxWindow, 1<<40, 3600),
		"bucket":  {Kind: limiter.Bucket, Packed: limiter.Packed{1 << 40}},
		"sliding": windowRule(limiter.SlidingWindow, 100, int64(max(1, keys/10_000))),
		"named":   named,
		"mixed":   mixed,
		"quota":   quota,
	}
}

// fillRule fills a store as its callers leave it: sliding windows with 100 records, buckets full.
func fillRule(s *Store, r limiter.Rule, keys, keyBytes int) *caller {
	c := newRuleCaller(s, keys, keyBytes, pieceRequests, r)
	rounds := 2
	if r.Kind == limiter.SlidingWindow {
		rounds = 110
	}
	for range rounds * keys / pieceRequests {
		c.call()
	}
	if r.Kind == limiter.Bucket {
		for i := range keys {
			putKey(c.names[0][0], uint64(i))
			_ = s.Apply(c.now, store.Key{Name: c.names[0][0]}, &limiter.Operation{Verb: limiter.Fill, Max: 1 << 40})
		}
	}
	return c
}

// BenchmarkKinds is a request for a key of each kind, beside a funnel's.
func BenchmarkKinds(b *testing.B) {
	const keys = 10_000
	for _, keyBytes := range []int{16, 36} {
		for _, name := range []string{"funnel", "fixed", "approx", "bucket", "sliding", "named", "mixed", "quota"} {
			var s *Store
			var filled *caller
			for _, batch := range []int{1, 16} {
				b.Run(fmt.Sprintf("bytes=%d/%s/batch=%d", keyBytes, name, batch), func(b *testing.B) {
					rule := benchRules(b, keys)[name]
					if s == nil {
						s = New()
						filled = fillRule(s, rule, keys, keyBytes)
					}
					c := newRuleCaller(s, keys, keyBytes, batch, rule)
					c.now = filled.now
					benchInTurns(b, c, nil)
					filled.now = c.now
				})
			}
		}
	}
}

// operations are repeatable.
func operations(tb testing.TB) map[string]func(i int) limiter.Operation {
	l := limit(tb, 1<<20, 1, 3600)
	return map[string]func(i int) limiter.Operation{
		"acquire and release": func(i int) limiter.Operation {
			return limiter.Operation{Verb: []limiter.Verb{limiter.Acquire, limiter.Release}[i%2], ID: uint64(i / 2 % 50), Max: 100, TTLNs: 3600 * sec}
		},
		"reserve and commit": func(i int) limiter.Operation {
			return limiter.Operation{Verb: []limiter.Verb{limiter.Reserve, limiter.Commit}[i%2], Funnel: l, ID: uint64(i / 2), Quantity: 1, TTLNs: 3600 * sec}
		},
		"add": func(int) limiter.Operation {
			return limiter.Operation{Verb: limiter.Add, Quantity: 1, Max: 1 << 40}
		},
	}
}

func BenchmarkOperate(b *testing.B) {
	for name, operation := range operations(b) {
		b.Run(name, func(b *testing.B) {
			s, now, i := New(), t0, 0
			names := newNames(1, 16)
			var o limiter.Operation // the caller's, who keeps one
			b.ReportAllocs()
			for b.Loop() {
				putKey(names[0], uint64(i/2)%10_000)
				o = operation(i)
				now += 1000
				if err := s.Apply(now, store.Key{Name: names[0]}, &o); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// TestKindsDoNotAllocate, except when a payload doubles.
func TestKindsDoNotAllocate(t *testing.T) {
	names := []string{"short", strings.Repeat("long", 20), strings.Repeat("longer", 2000)}
	for name, rule := range benchRules(t, 1) {
		for _, n := range []int{1, 16, pieceRequests} {
			s, now := New(), t0
			batch := make([]store.Request, n)
			for i := range batch {
				batch[i] = store.Request{Key: key(uint16(i%2), fmt.Sprint(names[i%3], i/6)), Rule: rule, Quantity: 1}
				_ = s.Apply(now, batch[i].Key, &limiter.Operation{Verb: limiter.Fill, Max: 1 << 40})
				if rule.Kind != limiter.Bucket {
					remove(s, now, batch[i].Key)
				}
			}
			call := func() {
				now += sec / 90
				s.Throttle(now, batch)
			}
			for range 300 { // windows reach their final size
				call()
			}
			if allocs := testing.AllocsPerRun(500, call); allocs != 0 {
				t.Errorf("%s: %v allocations a batch of %d on existing keys, want 0", name, allocs, n)
			}
			for i := range batch {
				if batch[i].Err != nil {
					t.Fatalf("%s: %v", name, batch[i].Err)
				}
			}
		}
	}
	for name, operation := range operations(t) {
		s, i, keys := New(), 0, []store.Key{key(0, names[0]), key(0, names[1])}
		var o limiter.Operation // the caller's, who keeps one
		call := func() {
			for _, k := range keys {
				o = operation(i)
				if err := s.Apply(t0+int64(i), k, &o); err != nil {
					t.Fatal(err)
				}
			}
			i++
		}
		for range 100 {
			call()
		}
		if allocs := testing.AllocsPerRun(500, call); allocs != 0 {
			t.Errorf("%s: %v allocations, want 0", name, allocs)
		}
	}
}
