package observe

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"cellserver/internal/wire/catalog"
)

// TestLocalsTakeTurns with more tallies than processors.
func TestLocalsTakeTurns(t *testing.T) {
	r := New(catalog.New(), t0)
	if want := 2 * runtime.GOMAXPROCS(0); len(r.tallies) != want {
		t.Fatalf("%d tallies, want %d", len(r.tallies), want)
	}
	given := map[*Tally]int{}
	for range 3 * len(r.tallies) {
		given[r.NewLocal().Tally]++
	}
	for _, n := range given {
		if n != 3 {
			t.Errorf("given %v", given)
		}
	}
	if r.Slowness.Any() {
		t.Error("new records have thresholds")
	}
}

// recorded returns records of everything by two tallies.
func recorded() *Records {
	table := catalog.New()
	r := New(table, t0)
	command := func(name string) *catalog.Command { return table.LookupFull([]byte(name)) }
	a, b := r.NewLocal(), r.NewLocal()
	for _, calls := range []int{1, 2, 3, 4, 5, MaxBatch} {
		a.Batch(command("cl.throttle"), calls, int64(calls)*3000)
	}
	a.Called(command("cl.throttle"), 7)
	a.NativeScript()
	b.NativeScript()
	b.Took(command("eval"), false, 2000, 5000)
	b.Called(command("keys"), 1)
	b.Took(command("keys"), true, 1000, 9000)
	b.Took(command("config|get"), false, 500, 500)
	r.Failed(command("keys"))
	r.Failed(command("keys"))
	r.Rejected(command("get"))
	r.Errors.Count(ErrorReply{Text: "ERR x"})
	r.ProtocolError()
	r.Script(ScriptFailed)
	r.Script(ScriptEnded)
	r.Script(ScriptEnded)
	r.Script(ScriptCompleted)
	return r
}

func TestCommandStats(t *testing.T) {
	r := recorded()
	got := map[string]string{}
	last := ""
	for _, c := range r.Commands() {
		if c.Command.FullName() <= last {
			t.Errorf("%s after %s", c.Command.FullName(), last)
		}
		last = c.Command.FullName()
		if c.Calls+c.Ns+c.Failed+c.Rejected != 0 {
			got[last] = fmt.Sprint(c.Calls, c.Ns, c.Failed, c.Rejected)
		}
	}
	want := map[string]string{
		"cl.throttle": "150 429000 0 0", "eval": "1 2000 0 0", "keys": "1 1000 2 0", "config|get": "1 500 0 0", "get": "0 0 0 1",
	}
	if !maps.Equal(got, want) || r.Executed() != 153 {
		t.Errorf("%d calls: got %v, want %v", r.Executed(), got, want)
	}
	byTime := map[string]string{}
	for id, h := range r.ByTime() {
		if calls, buckets := h.Cumulative(); calls > 0 {
			byTime[r.catalog.Commands()[id].FullName()] = fmt.Sprint(calls, buckets)
		}
	}
	want = map[string]string{"cl.throttle": "143 [{4 143}]", "eval": "1 [{2 1}]", "keys": "1 [{1 1}]", "config|get": "1 [{1 1}]"}
	if !maps.Equal(byTime, want) {
		t.Errorf("got %v, want %v", byTime, want)
	}
}

// TestRefused lists refused commands, and unknown ones together, until a reset.
func TestRefused(t *testing.T) {
	table := catalog.New()
	r := New(table, t0)
	for i, name := range []string{"sadd", "hset", "hset", "hset", "get"} {
		c := table.Lookup([]byte(name))
		r.Rejected(c)
		r.Errors.Count(ErrorReply{Text: "ERR " + strconv.Itoa(i), Command: c, Args: [][]byte{[]byte(name)}})
	}
	for range 2 {
		r.Errors.Count(ErrorReply{Text: "ERR unknown command", Args: [][]byte{[]byte("FOO")}})
	}
	r.Errors.Count(ErrorReply{Text: "ERR Protocol error"})
	var got []string
	for _, c := range r.Refused() {
		name := ""
		if c.Command != nil {
			name = c.Command.Name
		}
		got = append(got, fmt.Sprint(name, c.Rejected))
	}
	if want := []string{"hset3", "2", "sadd1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.ResetStat(); len(r.Refused()) != 0 {
		t.Error("a reset left some")
	}
}

func TestStats(t *testing.T) {
	r := recorded()
	st := r.Stats()
	if st.Since.UnixNano() != t0 || st.ProtocolErrors != 1 || st.Errors["ERR"] != 1 || st.Calls["cl.throttle"] != 150 || st.Calls["get"] != 0 {
		t.Errorf("got %+v", st)
	}
	if want := map[string]uint64{"completed": 3, "failed": 1, "ended": 2}; !maps.Equal(st.Scripts, want) {
		t.Errorf("scripts %v, want %v", st.Scripts, want)
	}
	if want := map[float64]uint64{1: 1, 2: 2, 4: 4, 8: 5, 16: 5, 32: 5, 64: 5, 128: 6}; !maps.Equal(st.Batches.UpTo, want) ||
		st.Batches.Count != 6 || st.Batches.Commands != 143 {
		t.Errorf("batches %+v, want %v", st.Batches, want)
	}
	for name, want := range map[string]string{"cl.throttle": "143 49317000", "script": "1 5000", "other": "2 9500"} {
		if d := st.Durations[name]; fmt.Sprint(d.Count, d.SumNs) != want {
			t.Errorf("%s: %d took %d ns, want %s", name, d.Count, d.SumNs, want)
		}
	}
	if d := r.ThrottleDurations(); d.Count != 143 || d.SumNs != 49_317_000 {
		t.Errorf("%d took %d ns", d.Count, d.SumNs)
	}
}

// TestResetStat: calls and errors restart, durations go on.
func TestResetStat(t *testing.T) {
	r := recorded()
	r.ResetStat()
	for _, c := range r.Commands() {
		if c.Calls+c.Ns+c.Failed+c.Rejected != 0 {
			t.Errorf("%s: %+v", c.Command.FullName(), c)
		}
	}
	st := r.Stats()
	if r.Errors.Counts().Total != 0 || st.Durations["cl.throttle"].Count != 143 || st.Batches.Count != 6 || st.Scripts["ended"] != 2 || st.ProtocolErrors != 1 {
		t.Errorf("got %+v", st)
	}
}
