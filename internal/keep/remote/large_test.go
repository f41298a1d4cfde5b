package remote

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/keep/remote/script"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/test/redistest"
)

// stat returns a number of INFO, or 0.
func stat(t *testing.T, p *redistest.Process, section, before, after string) int64 {
	t.Helper()
	info := p.Client().Info(t.Context(), section).Val()
	_, rest, _ := strings.Cut(info, before)
	text, _, _ := strings.Cut(rest, after)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// TestForeignValueIsNotRead: a foreign value of any length is WRONGTYPE by its first bytes, and neither read
// nor sent whole.
func TestForeignValueIsNotRead(t *testing.T) {
	s, p := onServer(t, Config{})
	for name, value := range map[string]string{
		"text": strings.Repeat("x", 10<<20), "digits": strings.Repeat("1", 10<<20),
		"ours":   "cl1:" + strings.Repeat("\x01", 10<<20),
		"longer": "cl1:\x01" + strings.Repeat("\x7f", 8) + "\x85\x06" + strings.Repeat("x", 10<<20),
	} {
		if err := p.Client().Set(t.Context(), name, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		sent := stat(t, p, "stats", "total_net_output_bytes:", "\r")
		for _, r := range []limiter.Rule{
			limiter.OfFunnel(mustLimit(t, 9, 1, 60)),
			{Kind: limiter.FixedWindow, Packed: mustWindow(t, 9, 60).Packed()},
			{Kind: limiter.SlidingWindow, Packed: mustWindow(t, 9, 60).Packed()},
			{Kind: limiter.Bucket, Packed: limiter.Packed{9}},
		} {
			q := decide(s, t0, store.Request{Key: named(name), Rule: r, Quantity: 1})[0]
			if !errors.Is(q.Err, limiter.ErrWrongType) {
				t.Errorf("%s, kind %v: %+v, %v", name, r.Kind, q.Result, q.Err)
			}
		}
		o := acquire(1)
		if err := s.Apply(t0, named(name), &o); !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("%s, an operation: %v", name, err)
		}
		if _, _, err := s.State(t0, named(name)); !errors.Is(err, limiter.ErrWrongType) {
			t.Errorf("%s, its state: %v", name, err)
		}
		// INFO itself takes some kilobytes.
		if sent = stat(t, p, "stats", "total_net_output_bytes:", "\r") - sent; sent > 32<<10 {
			t.Errorf("%s: %d bytes crossed the network", name, sent)
		}
	}
	if n := stat(t, p, "commandstats", "cmdstat_get:calls=", ","); n > 0 {
		t.Errorf("%d values were read whole", n)
	}
}

// TestForeignKeyInTransaction: a foreign value of any length stays when the other keys are written.
func TestForeignKeyInTransaction(t *testing.T) {
	s, p := onServer(t, Config{})
	values := []string{"text", "", "-5", strings.Repeat("x", 1<<20), "cl1:\x01" + strings.Repeat("\x02", 600)}
	for i, value := range values {
		if err := p.Client().Set(t.Context(), "foreign", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		tx := begun(t, s, named("own"), named("foreign"))
		q := []store.Request{ask("own", mustLimit(t, 9, 1, 3600), 1), ask("foreign", mustLimit(t, 9, 1, 3600), 1)}
		tx.Throttle(t0, q)
		if q[0].Err != nil || q[0].Result.Remaining != int64(9-i) || !errors.Is(q[1].Err, limiter.ErrWrongType) {
			t.Errorf("%.10q: %+v, %v", value, q[0].Result, q[1].Err)
		}
		committed(t, tx)
	}
}

// recorder notes each pipeline's longest call and reply in bytes, and whether it is Large.
type recorder struct {
	mu    sync.Mutex
	large int      // guarded by mu: pipelines
	wrong []string // guarded by mu
}

func (r *recorder) note(calls []*servers.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if calls[0].Large {
		r.large++
	}
	for _, c := range calls {
		bytes := 0
		for _, arg := range append(c.Args[:len(c.Args):len(c.Args)], c.Reply) {
			if all, ok := arg.([]any); ok && len(all) > 1 {
				arg = all[len(all)-1]
			}
			text, _ := arg.(string)
			bytes += len(text)
		}
		const most = 2*script.LargeBytes + 1<<10 // a swap sends the old value as well
		if c.Large != calls[0].Large || !c.Large && bytes > most {
			r.wrong = append(r.wrong, c.Keys[0]+": "+strconv.Itoa(bytes))
		}
	}
}

// TestLargeStatesGoApart: calls on a key with many reservations delay no other key's.
func TestLargeStatesGoApart(t *testing.T) {
	s, _ := onServer(t, Config{})
	r := &recorder{}
	s.noteTo(r.note)
	const n = 600
	for id := range uint64(n) {
		o := limiter.Operation{
			Verb: limiter.Reserve, Funnel: mustLimit(t, 1<<20, 1<<20, 3600), Quantity: 1,
			ID: id + 1, TTLNs: int64(id+1) * 3600 * sec,
		}
		if err := s.Apply(t0, named("large"), &o); err != nil || o.Result.Limited {
			t.Fatalf("reservation %d: %+v, %v", id, o.Result, err)
		}
		if id%100 == 0 {
			r := limiter.Rule{Kind: limiter.SlidingWindow, Packed: mustWindow(t, 1000, 3600).Packed()}
			decide(s, t0, store.Request{Key: named("small"), Rule: r, Quantity: 1})
		}
	}
	st, ok, err := s.State(t0, named("large"))
	if !ok || err != nil || len(st.Payload) < 5*script.LargeBytes {
		t.Fatalf("%d bytes, %v, %v", len(st.Payload), ok, err)
	}
	tx := begun(t, s, named("large"), named("small"))
	o := limiter.Operation{Verb: limiter.Commit, ID: 1}
	if err := tx.Apply(t0, named("large"), &o); err != nil {
		t.Fatal(err)
	}
	committed(t, tx)
	if r.large < n/2 || len(r.wrong) > 0 {
		t.Errorf("%d pipelines were of large values; those that were not, or not alone: %v", r.large, r.wrong)
	}
}
