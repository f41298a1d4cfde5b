package cellserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

var binary string

func TestMain(m *testing.M) { os.Exit(servertest.Run(m, "../..", &binary)) }

const long = servertest.Long

// patient returns a limiter of a server that answers, however slowly.
func patient(t *testing.T, addr string, onError cellserver.OnError) *cellserver.Limiter {
	t.Helper()
	return limiterOf(t, servertest.Patient(cellserver.Options(addr)), onError, long)
}

// hasty returns a limiter with the time-outs that users have.
func hasty(t *testing.T, addr string, onError cellserver.OnError) *cellserver.Limiter {
	t.Helper()
	return limiterOf(t, cellserver.Options(addr), onError, 0)
}

func limiterOf(
	t *testing.T, o *redis.Options, onError cellserver.OnError, timeout time.Duration,
) *cellserver.Limiter {
	t.Helper()
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return &cellserver.Limiter{
		Client: c, OnError: onError, Timeout: timeout, Report: func(err error) { t.Log(err) },
		Fallback: map[string]cellserver.Funnel{"api": {MaxBurst: 1, Count: 1, Period: time.Hour}},
	}
}

func TestAllow(t *testing.T) {
	s := servertest.Start(t, binary)
	s.Do(t, "cl.limit set api funnel 1 1 3600 fixedwindow 100 60")
	s.Do(t, "cl.limit override api nobody deny")
	s.Do(t, "cl.limit override api all unlimited")
	l := patient(t, s.Addr, cellserver.Closed)
	longKey := strings.Repeat("k", 5000)
	for i, tt := range []struct {
		key              string
		n                int64
		allowed          bool
		limit, remaining int64
		retries          bool
	}{
		{"a", 1, true, 2, 1, false},
		{"a", 0, true, 2, 1, false},
		{"a", 2, false, 2, 1, true},
		{"a", 3, false, 2, 1, false}, // never
		{"a", 1, true, 2, 0, false},
		{"b", 2, true, 2, 0, false},
		{"nobody", 1, false, 0, 0, false},
		{"all", 1, true, 1<<63 - 1, 1<<63 - 1, false},
		{longKey, 2, true, 2, 0, false}, // longer than the server takes
		{longKey, 1, false, 2, 0, true},
		{longKey + "k", 1, true, 2, 1, false},
	} {
		r, err := l.Allow(t.Context(), "api", tt.key, tt.n)
		if err != nil || r.Name != "api" || r.Err != nil {
			t.Fatalf("%d: %+v, %v", i, r, err)
		}
		if r.Allowed != tt.allowed || r.Limit != tt.limit || r.Remaining != tt.remaining ||
			(r.RetryAfter > 0) != tt.retries {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if _, err := l.Allow(t.Context(), "api", "a", -1); err == nil {
		t.Error("a negative quantity returns units")
	}
}

func TestAllowAtMost(t *testing.T) {
	s := servertest.Start(t, binary)
	s.Do(t, "cl.limit set api funnel 4 1 3600 fixedwindow 100 60")
	s.Do(t, "cl.limit set ghost funnel 4 1 3600 shadow")
	s.Do(t, "cl.limit override api all unlimited")
	l := patient(t, s.Addr, cellserver.Closed)
	for i, tt := range []struct {
		limit, key string
		n, taken   int64
		remaining  int64
	}{
		{"api", "a", 3, 3, 2}, {"api", "a", 3, 2, 0}, {"api", "a", 3, 0, 0}, {"api", "b", 99, 5, 0},
		{"api", "all", 7, 7, 1<<63 - 1}, {"ghost", "a", 7, 7, 0}, {"ghost", "a", 7, 7, 0},
	} {
		r, err := l.AllowAtMost(t.Context(), tt.limit, tt.key, tt.n)
		if err != nil || r.Taken != tt.taken || r.Allowed != (tt.taken > 0) || r.Remaining != tt.remaining || r.Err != nil {
			t.Errorf("%d: %+v, %v, want %d taken", i, r, err, tt.taken)
		}
	}
	if _, err := l.AllowAtMost(t.Context(), "api", "a", 0); err == nil {
		t.Error("at most none were allowed")
	}
}

// TestAllowAtMostWithoutServer decides by OnError.
func TestAllowAtMostWithoutServer(t *testing.T) {
	for onError, want := range map[cellserver.OnError][]int64{cellserver.Open: {9, 9}, cellserver.Local: {2, 0}, cellserver.Closed: nil} {
		l := failures["stopped"](t, onError)
		for _, want := range want {
			r, err := l.AllowAtMost(t.Context(), "api", "k", 9)
			if err != nil || r.Taken != want || r.Allowed != (want > 0) || r.Err == nil {
				t.Errorf("%v: %+v, %v, want %d taken", onError, r, err, want)
			}
		}
		if _, err := l.AllowAtMost(t.Context(), "api", "k", 9); (err != nil) != (want == nil) {
			t.Errorf("%v: %v", onError, err)
		}
	}
}

func TestReserve(t *testing.T) {
	s := servertest.Start(t, binary)
	l := patient(t, s.Addr, cellserver.Closed)
	f := cellserver.Funnel{MaxBurst: 99, Count: 1, Period: time.Hour}
	first, err := l.Reserve(t.Context(), "k", f, 80, long)
	if err != nil || !first.Allowed || first.Remaining != 20 {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := l.Reserve(t.Context(), "k", f, 80, long)
	if err != nil || second.Allowed || second.RetryAfter <= 0 {
		t.Fatalf("%+v, %v", second, err)
	}
	for _, r := range []*cellserver.Reservation{second, first, first} { // the last does nothing
		if err := r.Commit(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	second, err = l.Reserve(t.Context(), "k", f, 80, long)
	if err != nil || !second.Allowed || second.Remaining != 10 {
		t.Errorf("after 10 of 80: %+v, %v", second, err)
	}
	for _, err := range []error{second.Commit(t.Context(), -1), reserve(l, f, -1, long), reserve(l, f, 1, 0),
		reserve(l, cellserver.Funnel{}, 1, long), reserve(l, cellserver.Funnel{Count: 1, Period: 1}, 1, long)} {
		if err == nil {
			t.Error("no error")
		}
	}
}

func reserve(l *cellserver.Limiter, f cellserver.Funnel, n int64, ttl time.Duration) error {
	_, err := l.Reserve(context.Background(), "k", f, n, ttl)
	return err
}

// failures are servers that do not decide.
var failures = map[string]func(t *testing.T, onError cellserver.OnError) *cellserver.Limiter{
	"stopped": func(t *testing.T, onError cellserver.OnError) *cellserver.Limiter {
		s := servertest.Start(t, binary, "--addr="+servertest.FreeAddr(t))
		s.Stop()
		return hasty(t, s.Addr, onError)
	},
	"hung": func(t *testing.T, onError cellserver.OnError) *cellserver.Limiter {
		s := servertest.Start(t, binary)
		s.Do(t, "cl.limit set api funnel 1 1 3600")
		s.Hang(t)
		return hasty(t, s.Addr, onError)
	},
	"silent": func(t *testing.T, onError cellserver.OnError) *cellserver.Limiter {
		return hasty(t, silent(t), onError)
	},
	"full": func(t *testing.T, onError cellserver.OnError) *cellserver.Limiter {
		s := servertest.Start(t, binary, "--maxmemory=48mb", "--maxmemory-policy=noeviction")
		s.Do(t, "cl.limit set api funnel 1 1 3600")
		fill(t, s.Addr)
		return patient(t, s.Addr, onError)
	},
}

// silent accepts connections and never answers.
func silent(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	return l.Addr().String()
}

// fill adds keys until the server refuses a thousand, as each shard has a part of the memory.
func fill(t *testing.T, addr string) {
	t.Helper()
	c := redis.NewClient(servertest.Patient(cellserver.Options(addr)))
	defer func() { _ = c.Close() }()
	const many = 1000
	for n, refused := 0, 0; refused < many; {
		calls, _ := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range many {
				n++
				p.Do(t.Context(), "CL.CHECK", "api", fmt.Sprint("full:", n))
			}
			return nil
		})
		refused = 0
		for _, call := range calls {
			if err := call.Err(); err != nil && !strings.HasPrefix(err.Error(), "OOM") {
				t.Fatal(err)
			} else if err != nil {
				refused++
			}
		}
	}
}

func TestNoServerDecides(t *testing.T) {
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := failure(t, cellserver.Open)
			for range 5 {
				if r, err := l.Allow(t.Context(), "api", "k", 1); err != nil || !r.Allowed || r.Err == nil {
					t.Errorf("open: %+v, %v", r, err)
				}
			}
			l.OnError = cellserver.Closed
			if r, err := l.Allow(t.Context(), "api", "k", 1); err == nil || r.Allowed {
				t.Errorf("closed: %+v", r)
			} else if err := l.Wait(t.Context(), "api", "k", 1); err == nil || isMistake(err) {
				t.Errorf("closed: Wait returns %v", err)
			}
			l.OnError = cellserver.Local
			got := []bool{}
			for range 3 {
				r, err := l.Allow(t.Context(), "api", "k", 1)
				if err != nil || r.Err == nil || r.Limit != 2 {
					t.Fatalf("local: %+v, %v", r, err)
				}
				got = append(got, r.Allowed)
			}
			if !slices.Equal(got, []bool{true, true, false}) {
				t.Errorf("local allows %v", got)
			}
			if r, err := l.Allow(t.Context(), "other", "k", 1); err == nil {
				t.Errorf("local, without a fallback: %+v", r)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			l.OnError = cellserver.Open
			if r, err := l.Allow(ended, "api", "k", 1); err == nil && r.Err != nil {
				t.Errorf("a context that has ended: %+v", r)
			}
		})
	}
}

func TestReserveWithoutServer(t *testing.T) {
	l := hasty(t, silent(t), cellserver.Local)
	f := cellserver.Funnel{MaxBurst: 9, Count: 1, Period: time.Hour}
	for _, want := range []bool{true, false} {
		r, err := l.Reserve(t.Context(), "k", f, 6, long)
		if err != nil || r.Allowed != want || r.Err == nil {
			t.Errorf("%+v, %v", r, err)
		} else if err := r.Commit(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
}

// TestServerReturns uses the time-outs of users on both sides of an outage.
func TestServerReturns(t *testing.T) {
	s := servertest.Start(t, binary, "--addr="+servertest.FreeAddr(t))
	s.Do(t, "cl.limit set api funnel 1000000 1 1")
	l := hasty(t, s.Addr, cellserver.Open)
	decides := func() bool {
		r, err := l.Allow(t.Context(), "api", "k", 1)
		if err != nil || !r.Allowed {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Err == nil
	}
	until := func(want bool) {
		for decides() != want { //nolint:revive // each turn calls the server
		}
	}
	until(true)
	s.Hang(t)
	until(false)
	s.Continue(t)
	until(true)
	s.Stop()
	until(false)
	servertest.Start(t, binary, "--addr="+s.Addr).Do(t, "cl.limit set api funnel 1000000 1 1")
	until(true)
}

// scripted answers by a function, in the time of a bubble.
type scripted func() []any

func (f scripted) Do(ctx context.Context, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetVal(f())
	return cmd
}

func TestWait(t *testing.T) {
	denied := func(after int64) []any { return []any{int64(1), int64(1), int64(0), after, after} }
	for name, tt := range map[string]struct {
		free      time.Duration // when a unit is available; below 0 for never
		timeout   time.Duration // of the context
		calls     int           // at most
		late      time.Duration // at most
		wantError error
	}{
		"at once":                 {0, time.Hour, 1, 0, nil},
		"soon":                    {30 * time.Millisecond, time.Hour, 4, 60 * time.Millisecond, nil},
		"within the first second": {900 * time.Millisecond, time.Hour, 9, 320 * time.Millisecond, nil},
		"later":                   {90500 * time.Millisecond, time.Hour, 9, 320 * time.Millisecond, nil},
		"never":                   {-1, time.Hour, 1, 0, cellserver.ErrNever},
		"beyond the deadline":     {time.Minute, 58 * time.Second, 1, 0, context.DeadlineExceeded},
		"about the deadline":      {time.Minute, 59500 * time.Millisecond, 9, 0, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				l := &cellserver.Limiter{Client: scripted(func() []any {
					calls++
					left := tt.free - time.Since(start)
					switch {
					case tt.free < 0:
						return denied(-1)
					case left > 0:
						return denied(int64((left + time.Second - 1) / time.Second))
					}
					return []any{int64(0), int64(1), int64(0), int64(-1), int64(1)}
				})}
				ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
				defer cancel()
				if err := l.Wait(ctx, "api", "k", 1); !errors.Is(err, tt.wantError) {
					t.Errorf("it returns %v", err)
				}
				late := time.Since(start) - tt.free
				if tt.wantError == nil && (late < 0 || late > tt.late) || calls > tt.calls {
					t.Errorf("it returns %s late, after %d calls", late, calls)
				}
			})
		})
	}
}

func TestReport(t *testing.T) {
	l := &cellserver.Limiter{Client: scripted(func() []any { return []any{"what"} }), OnError: cellserver.Closed}
	said := ""
	l.Report = func(err error) { said = err.Error() }
	if _, err := l.Allow(t.Context(), "api", "k", 1); err == nil || said != err.Error() {
		t.Errorf("it reports %q", said)
	}
}
