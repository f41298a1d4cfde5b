package shadow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/test/patience"
)

// step is another client's call: time, command and the TAT that the source then holds.
type step struct {
	offset int64
	place  string
	tat    string // an offset in nanoseconds, or "=" and the value; empty if unchanged
	args   string
}

// follow plays steps one by one, each read before the next if it is a limiter's.
func follow(t *testing.T, o Options, steps []step) (Summary, []Difference, error) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	var s *source
	next := 0
	advance := func() {
		for next < len(steps) {
			step := steps[next]
			next++
			value := strings.TrimPrefix(step.tat, "=")
			var offset int64
			if _, err := fmt.Sscan(step.tat, &offset); err == nil {
				value = fmt.Sprint(t0 + offset)
			}
			args := strings.Fields(step.args)
			s.called(t0+step.offset, step.place, value, args...)
			if strings.HasPrefix(args[0], "cl.") {
				return
			}
		}
		cancel()
	}
	s = startSource(t, func(s *source) { s.pinged, s.read = advance, advance })
	var differences []Difference
	o.Source.Addr, o.Tolerance = s.addr, 10*time.Millisecond
	o.Report = func(d Difference) { differences = append(differences, d) }
	summary, err := Run(ctx, o)
	return summary, differences, err
}

const call = "cl.throttle k 1 1 1" // 2 units, one leaks per second

func TestFollow(t *testing.T) {
	second := fmt.Sprint
	for _, tt := range []struct {
		name     string
		reading  funnel.Reading
		steps    []step
		want     Summary // some fields
		reported []string
	}{
		{"as it should be", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{100 * ms, "0/k", second(2 * sec), call},
			{200 * ms, "0/k", "", call},
			{5 * sec, "0/k", second(6*sec + 3*ms), call},
		}, Summary{Calls: 4, Allowed: 2, Limited: 1, Either: 1, Compared: 3, Single: 3, Unknown: 1, Reads: 4, ClockReads: 1}, nil},
		{"databases", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{0, "3/k", second(2 * sec), call},
			{100 * ms, "3/k", "", call},
			{100 * ms, "0/k", second(2 * sec), call},
		}, Summary{Calls: 4, Allowed: 1, Limited: 1, Either: 2, Compared: 2, Single: 2, Unknown: 2, Reads: 4}, nil},
		{"a nanosecond off", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{100 * ms, "0/k", second(2*sec + 1), call},
			{200 * ms, "0/k", "", call},
		}, Summary{Calls: 3, Allowed: 1, Limited: 1, Either: 1, Compared: 2, Single: 2, Unknown: 1, Reads: 3, Different: 1},
			[]string{"2023-11-14T22:13:20.100000Z db 0 cl.throttle k 1 1 1: here empty in 1.9s; there empty in 1.900000001s: allowed here, allowed there"}},
		{"limited there", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{100 * ms, "0/k", "", call},
		}, Summary{Calls: 2, Allowed: 1, Either: 1, Compared: 1, Single: 1, Unknown: 1, Reads: 2, Different: 1},
			[]string{"2023-11-14T22:13:20.100000Z db 0 cl.throttle k 1 1 1: here empty in 1.9s; there empty in 900ms: allowed here, limited there"}},
		{"another reading", funnel.Capacity, []step{
			{0, "0/k", second(sec), call},
			{100 * ms, "0/k", second(2 * sec), call},
			{200 * ms, "0/j", "", "cl.throttle j 0 1 1"},
		}, Summary{Calls: 3, Limited: 1, Either: 1, Refused: 1, Compared: 1, Single: 1, Unknown: 2, Reads: 3, Different: 1},
			[]string{"2023-11-14T22:13:20.100000Z db 0 cl.throttle k 1 1 1: here empty in 900ms; there empty in 1.9s: limited here, allowed there"}},
		{"an error here", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{100 * ms, "0/k", second(2 * sec), "cl.throttle k x 1 1"},
		}, Summary{Calls: 2, Either: 1, Refused: 1, Compared: 1, Single: 1, Unknown: 1, Reads: 2, Different: 1},
			[]string{"2023-11-14T22:13:20.100000Z db 0 cl.throttle k x 1 1: here empty in 900ms; there empty in 1.9s; here it is an error: cl.throttle: Couldn't parse as integer: x"}},
		{"others write", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{0, "0/k", second(100 * sec), "SET k 1"},
			{100 * ms, "0/k", "", call},
			{100 * ms, "0/k", "", "FLUSHALL"},
			{200 * ms, "0/k", second(3 * sec), "cl.throttle k 9 1 1"},
		}, Summary{Calls: 3, Either: 3, Unknown: 3, Reads: 3}, nil},
		{"other limiters", funnel.Burst, []step{
			{0, "0/k", "", "CL.BTHROTTLE k 1 1 1 0"},
			{0, "0/w", "", "CL.FIXEDWINDOW w 1 1"},
			{0, "0/w", "=-WRONGTYPE Operation against a key holding the wrong kind of value", "cl.throttle w 1 1 1"},
			{0, "0/x", "=no number", "cl.throttle x 1 1 1"},
			{0, "0/q", "", "CL.QUOTA q 1 DAY TZ Europe/Berlin"},
		}, Summary{Calls: 2, Either: 2, OtherKinds: 3, Reads: 2, Unread: 2}, nil},
		{"debits are of another limiter", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{0, "0/k", second(100 * sec), "CL.DEBIT k 1 1 1 99"},
			{100 * ms, "0/k", second(100 * sec), call},
		}, Summary{Calls: 2, Either: 2, Unknown: 2, OtherKinds: 1, Reads: 2}, nil},
		{"at most some is another call", funnel.Burst, []step{
			{0, "0/k", second(sec), call},
			{0, "0/k", second(100 * sec), "CL.THROTTLE k 1 1 1 9 ATMOST"},
			{100 * ms, "0/k", second(100 * sec), call},
		}, Summary{Calls: 2, Either: 2, Unknown: 2, OtherKinds: 1, Reads: 2}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, differences, err := follow(t, Options{Reading: tt.reading}, tt.steps)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want.ClockReads > 0 && (got.ClockLeast != 3*time.Millisecond || got.ClockMost != 3*time.Millisecond) {
				t.Errorf("clocks are from %s to %s apart", got.ClockLeast, got.ClockMost)
			}
			got.ClockLeast, got.ClockMost, got.Keys, got.Took = 0, 0, 0, 0
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			var lines []string
			for _, d := range differences {
				lines = append(lines, d.String())
			}
			if !slices.Equal(lines, tt.reported) {
				t.Errorf("got  %q\nwant %q", lines, tt.reported)
			}
		})
	}
}

// TestManyCalls: between two reads of a key, a value reflects exactly the calls before it.
func TestManyCalls(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	const calls = 10_000
	tat := t0
	s := startSource(t, func(s *source) {
		s.pinged = func() {
			go func() {
				for i := range int64(calls) {
					if tat = max(tat, t0+i); tat+sec <= t0+i+1000*sec {
						tat += sec
					}
					s.called(t0+i, "0/k", fmt.Sprint(tat), "cl.throttle", "k", "999", "1", "1")
				}
				cancel()
			}()
		}
	})
	summary, err := Run(ctx, Options{Source: Source{Addr: s.addr}, Report: func(d Difference) { t.Error(d.String()) }})
	if err != nil || summary.Calls != calls || summary.Compared+summary.Unknown != summary.Calls || summary.Different > 0 {
		t.Errorf("%+v, %v", summary, err)
	}
}

func TestErrors(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	for _, tt := range []struct {
		name string
		set  func(s *source, o *Options)
		want string
	}{
		{"nobody", func(_ *source, o *Options) { o.Source.Addr = gone.Addr().String() }, "check the address, and that the server runs"},
		{"no password", func(s *source, _ *Options) { s.password = "secret" }, "NOAUTH Authentication required; give its password by --password-file"},
		{"a wrong password", func(s *source, o *Options) { s.password, o.Source.Password = "secret", "x" }, "check the user, and the password of --password-file"},
		{"another server", func(s *source, o *Options) { s.hides, o.Timeout = true, 2*time.Second }, "MONITOR does not show the second connection"},
		{"no rights", func(s *source, _ *Options) { s.values["0/k"] = "-NOPERM this user has no permissions" }, "the user needs +monitor +get +select +ping, and the keys"},
		{"a line in no format", func(s *source, _ *Options) {
			s.pinged = func() { s.write("+what\r\n") }
		}, "it shows +what"},
		{"the stream ends", func(s *source, _ *Options) {
			s.pinged = func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				_ = s.monitors[0].Close()
			}
		}, "EOF; it has closed the connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Options{Report: func(Difference) {}}
			startSource(t, func(s *source) {
				s.pinged = func() { s.called(t0, "0/k", "", "cl.throttle", "k", "1", "1", "1") }
				o.Source.Addr = s.addr
				tt.set(s, &o)
			})
			if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "shadow: "+o.Source.Addr) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestPassword(t *testing.T) {
	for _, from := range []Source{{Password: "secret"}, {User: "watcher", Password: "secret"}} {
		s := startSource(t, func(s *source) { s.password = strings.TrimPrefix(from.User+":secret", ":") })
		ctx, cancel := context.WithCancel(t.Context())
		from.Addr = s.addr
		if _, err := Run(ctx, Options{Source: from, Following: cancel}); err != nil {
			t.Error(err)
		}
	}
}

// TestMemory: memory is bounded. Keys with empty funnels are forgotten first, and queued ones never.
func TestMemory(t *testing.T) {
	const maxKeys = 100
	m := newMemory(maxKeys * (keyBytes + 3))
	for i := range 150 {
		k := m.key(0, fmt.Append(nil, i), t0)
		if k.noteTAT(t0 - 1); i%2 == 0 {
			k.noteTAT(t0 + sec)
		}
		if i == 0 {
			m.wait(k)
		}
	}
	if len(m.all) > maxKeys || !m.all[place{0, "0"}].waiting || m.all[place{0, "149"}] == nil {
		t.Errorf("%d keys", len(m.all))
	}
	for i := range 200 {
		k := m.key(1, fmt.Append(nil, i), t0)
		k.noteTAT(t0 + sec)
	}
	if len(m.all) > maxKeys || m.all[place{0, "0"}] == nil {
		t.Errorf("%d keys", len(m.all))
	}
	refused := 0
	for i := range 200 {
		if k := m.key(2, fmt.Append(nil, i), t0); k == nil {
			refused++
		} else if !m.wait(k) || m.wait(k) {
			t.Error("a key begins to wait once")
		}
	}
	if waiting := m.waitingBytes / keyBytes; refused != 200-maxKeys/2+1 || waiting != maxKeys/2 || len(m.all) > maxKeys {
		t.Errorf("%d refused, %d wait, of %d keys", refused, waiting, len(m.all))
	}
	m.read(m.all[place{0, "0"}])
	if m.key(2, []byte("new"), t0) == nil || m.key(2, make([]byte, maxNameBytes+1), t0) != nil {
		t.Error("there is room again for a key, and never for one that is too long")
	}
	left := 0
	for _, k := range m.all {
		left += k.bytes()
	}
	if left != m.bytes {
		t.Errorf("%d bytes, and counted were %d", left, m.bytes)
	}
}

// TestReadKeysAreForgotten: keys that were read make way for new ones, however many there are over time.
func TestReadKeysAreForgotten(t *testing.T) {
	var steps []step
	for i := range 20 {
		key := fmt.Sprintf("%02d", i)
		steps = append(steps, step{int64(i), "0/" + key, "1000000000", "cl.throttle " + key + " 1 1 1"})
	}
	s, _, err := follow(t, Options{MaxBytes: 6 * (keyBytes + 2)}, steps)
	if err != nil || s.Calls != 20 || s.Missed > 0 || s.Keys > 6 {
		t.Errorf("got %+v, %v, want 20 calls, none missed, at most 6 keys", s, err)
	}
}

// TestTooManyKeys: calls on keys that cannot be read in time are counted and take no memory.
func TestTooManyKeys(t *testing.T) {
	t.Parallel()
	const calls, kept = 1000, 10
	ctx, cancel := context.WithCancel(t.Context())
	following := make(chan struct{})
	s := startSource(t, func(s *source) {
		s.pinged = func() {
			go func() {
				for i := range calls {
					s.called(t0, "0/", "", "cl.throttle", fmt.Sprintf("%04d", i), "1", "1", "1")
				}
				<-following // else the end could precede the stream
				cancel()
			}()
		}
	})
	summary, err := Run(ctx, Options{Source: Source{Addr: s.addr}, Rate: 1, Timeout: 4 * time.Second,
		MaxBytes: 2 * kept * (keyBytes + 4), Tolerance: 500 * time.Millisecond,
		Following: func() { close(following) },
		Report:    func(d Difference) { t.Error(d.String()) }})
	if err != nil || summary.Calls != calls || summary.Unknown+summary.Missed != calls || summary.Missed < calls/2 || summary.Keys > 2*kept {
		t.Errorf("%+v, %v", summary, err)
	}
}

// TestLongLine: a call too long to parse may have changed any key.
func TestLongLine(t *testing.T) {
	var reported []Difference
	long := strings.Repeat("x", maxLineBytes)
	ctx, cancel := patience.Context(t.Context())
	defer cancel()
	var s *source
	steps := []func(){
		func() { s.called(t0, "0/k", fmt.Sprint(t0+sec), "cl.throttle", "k", "1", "1", "1") },
		func() {
			s.write("+1700000000.000000 [0 192.0.2.1:5000] \"SET\" \"" + long + "\"\r\n")
			s.called(t0+100*ms, "0/k", fmt.Sprint(t0+2*sec+7), "cl.throttle", "k", "1", "1", "1")
		},
		cancel,
	}
	next := func() {
		if len(steps) > 0 {
			step := steps[0]
			steps = steps[1:]
			step()
		}
	}
	s = startSource(t, func(s *source) { s.pinged, s.read = next, next })
	summary, err := Run(ctx, Options{Source: Source{Addr: s.addr}, Report: func(d Difference) { reported = append(reported, d) }})
	if err != nil || summary.Calls != 2 || summary.Unknown != 2 || len(reported) > 0 {
		t.Errorf("%+v, %v, %v", summary, reported, err)
	}
}

// TestBytesOfLines: queued lines are bounded.
func TestBytesOfLines(t *testing.T) {
	const size, total = 8 << 20, 20
	here, there := net.Pipe()
	q, ended := newLines(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- q.fill(ctx, &conn{nc: here, r: bufio.NewReader(here)}) }()
	line := append(make([]byte, size), '\n')
	for range queuedBytes/size + 1 {
		if _, err := there.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for range total - queuedBytes/size - 1 {
			if _, err := there.Write(line); err != nil {
				t.Error(err)
			}
		}
	}()
	for range total {
		if bytes := q.bytes.Load(); bytes > queuedBytes+size {
			t.Errorf("%d bytes", bytes)
		}
		q.noteTaken(<-q.c)
	}
	cancel()
	_ = there.Close()
	if err := <-ended; err == nil || q.bytes.Load() != 0 {
		t.Errorf("%v, %d bytes", err, q.bytes.Load())
	}
}

// TestEndsEarly: ending before the source has answered is an error.
func TestEndsEarly(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for password, connections := range map[string]int{"": 2, "secret": 1} { // before a reply is needed
		ctx, cancel := context.WithCancel(t.Context())
		accepted := make(chan net.Conn, 2)
		go func() {
			for range connections {
				nc, err := silent.Accept()
				if err != nil {
					return
				}
				accepted <- nc
			}
			cancel()
		}()
		_, err := Run(ctx, Options{Source: Source{Addr: silent.Addr().String(), Password: password}, Timeout: time.Hour})
		if !errors.Is(err, errEarly) {
			t.Errorf("password %q: %v", password, err)
		}
		for len(accepted) > 0 {
			_ = (<-accepted).Close()
		}
	}
}
