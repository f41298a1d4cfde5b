package vm

import (
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
)

const maxBytes = 1000

// A run is a meter on a clock that stands still unless it is moved.
type run struct {
	*Meter
	nowNs int64
}

func begin(limit time.Duration) *run {
	r := &run{nowNs: 1e9}
	r.Meter = Attach(lua.NewState(lua.Options{SkipOpenLibs: true}), func() int64 { return r.nowNs }, nil)
	r.Begin(nil, limit, maxBytes)
	return r
}

// endedBy returns why f ended the run, or nothing.
func (r *run) endedBy(f func()) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			reason = p.(*lua.ApiError).Object.String()
		}
	}()
	f()
	return ""
}

// look has the meter look at the clock after some time.
func (r *run) look(after time.Duration) string {
	r.nowNs += int64(after)
	return r.endedBy(func() { r.Spend(lookEvery) })
}

func TestTime(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		looks []time.Duration // one after the other; only the last one ends the run
		ends  bool
	}{
		{"below the limit", []time.Duration{5 * ms, 5 * ms, 10 * ms}, false},
		{"at the limit", []time.Duration{10 * ms, 10 * ms}, false},
		{"beyond the limit", []time.Duration{10 * ms, 10 * ms, 1}, true},
		{"others had the processor", []time.Duration{200 * ms, 100 * ms}, false},
		{"others had it again and again", []time.Duration{200 * ms, 10 * ms, 1}, true},
		{"others had it for too long", []time.Duration{401 * ms}, true},
	} {
		r := begin(20 * ms)
		for i, after := range c.looks {
			want := ""
			if c.ends && i == len(c.looks)-1 {
				want = "ERR script ran longer than 20 ms and was ended; see --lua-time-limit"
			}
			if got := r.look(after); got != want {
				t.Errorf("%s: look %d: ended by %q, want %q", c.name, i, got, want)
			}
		}
		if used := r.Ran() >= 20*ms; c.ends && !used {
			t.Errorf("%s: ended after %s of 20 ms", c.name, r.Ran())
		}
	}
}

// TestThreadTime: the thread's processor time counts, as far as it is known; the wall clock's bound stays.
func TestThreadTime(t *testing.T) {
	const ms = time.Millisecond
	type look struct{ passed, thread time.Duration }
	for _, c := range []struct {
		name  string
		looks []look // one after the other; only the last one ends the run
		ends  bool
	}{
		{"others had the processor, in small pieces", []look{{5 * ms, ms}, {5 * ms, ms}, {5 * ms, ms}, {9 * ms, ms}, {9 * ms, ms}, {9 * ms, ms}, {9 * ms, ms}, {9 * ms, ms}}, false},
		{"its own time", []look{{5 * ms, 5 * ms}, {25 * ms, 15 * ms}, {1, 1}}, true},
		{"on another thread, which had less", []look{{0, 0}, {5 * ms, -30 * ms}, {5 * ms, 5 * ms}, {9 * ms, 9 * ms}, {6 * ms, 5*ms + 1}}, true},
		{"on another thread, which had more", []look{{0, 0}, {5 * ms, 30 * ms}, {15 * ms, 30 * ms}, {18 * ms, 18 * ms}, {1, 1}}, true},
		{"others had the processor before the first look", []look{{200 * ms, ms}, {10 * ms, 10 * ms}, {ms, 1}}, true},
		{"others had it for too long", []look{{399 * ms, 0}, {2 * ms, 0}}, true},
	} {
		r := begin(20 * ms)
		threadNs := int64(100 * ms)
		r.threadNow = func() int64 { return threadNs }
		r.Begin(nil, 20*ms, maxBytes)
		for i, l := range c.looks {
			threadNs += int64(l.thread)
			want := ""
			if c.ends && i == len(c.looks)-1 {
				want = "ERR script ran longer than 20 ms and was ended; see --lua-time-limit"
			}
			if got := r.look(l.passed); got != want {
				t.Errorf("%s: look %d: ended by %q, want %q", c.name, i, got, want)
			}
		}
	}
}

// TestTimeOfARunThatOthersWaitFor: its limit is short, and suspensions count little.
func TestTimeOfARunThatOthersWaitFor(t *testing.T) {
	const ms = time.Millisecond
	r := begin(3 * ms)
	r.Terms(true, 5*ms, "be quick")
	for i, after := range []time.Duration{ms, 9 * ms, ms} {
		if got := r.look(after); got != "" || r.Ran() != time.Duration(i+1)*ms {
			t.Fatalf("look %d: ended by %q after %s", i, got, r.Ran())
		}
	}
	if got, want := r.look(1), "ERR script ran longer than 5 ms and was ended; be quick"; got != want {
		t.Errorf("ended by %q, want %q", got, want)
	}
}

// TestClockIsReadSeldom: the clock is read once in a thousand instructions.
func TestClockIsReadSeldom(t *testing.T) {
	readings := 0
	m := Attach(lua.NewState(lua.Options{SkipOpenLibs: true}), func() int64 { readings++; return 0 }, nil)
	m.Begin(nil, time.Second, maxBytes)
	for range 10 * lookEvery {
		m.Done()
	}
	if readings != 1+10 {
		t.Errorf("%d readings", readings)
	}
}

func TestMemory(t *testing.T) {
	r := begin(time.Second)
	if got := r.endedBy(func() { r.Charge(600); r.Charge(400) }); got != "" || r.UsedBytes() != 1000 {
		t.Errorf("ended by %q at %d bytes", got, r.UsedBytes())
	}
	for _, n := range []int{1, -1} {
		if got := r.endedBy(func() { r.Charge(n) }); got != "ERR script used more than 1000 bytes of memory and was ended" {
			t.Errorf("%d bytes more: ended by %q", n, got)
		}
	}
}

// TestEndStays: a script that catches the end gets no further.
func TestEndStays(t *testing.T) {
	r := begin(time.Second)
	r.Kill()
	if got := r.endedBy(func() { r.Spend(1) }); got != "" {
		t.Errorf("ended by %q before a look", got)
	}
	for range 3 {
		if got := r.look(0); !strings.HasPrefix(got, "ERR Script killed by user") {
			t.Errorf("ended by %q", got)
		}
	}
	if got := r.endedBy(r.Rethrow); !strings.HasPrefix(got, "ERR Script killed by user") {
		t.Errorf("rethrown as %q", got)
	}
	r.Begin(nil, time.Second, maxBytes)
	if got := r.look(0); got != "" {
		t.Errorf("the next run was ended by %q", got)
	}
}

func TestGone(t *testing.T) {
	r, gone := begin(time.Second), make(chan struct{})
	r.Begin(gone, time.Second, maxBytes)
	if got := r.look(0); got != "" {
		t.Errorf("ended by %q", got)
	}
	close(gone)
	if got := r.look(0); got != "ERR script was ended: its client has gone, or the server is shutting down" {
		t.Errorf("ended by %q", got)
	}
}

// TestLongThingsCost: instructions cost more while one may be long.
func TestLongThingsCost(t *testing.T) {
	for _, c := range []struct {
		n    int
		want int // instructions until a look
	}{{0, 1000}, {1023, 1000}, {1024, 500}, {1 << 20, 1}} {
		readings := 0
		m := Attach(lua.NewState(lua.Options{SkipOpenLibs: true}), func() int64 { readings++; return 0 }, nil)
		m.Begin(nil, time.Second, maxBytes)
		m.Widen(c.n)
		got := 0
		for ; readings < 2; got++ {
			m.Done()
		}
		if got != c.want {
			t.Errorf("%d bytes: %d instructions, want %d", c.n, got, c.want)
		}
	}
}
