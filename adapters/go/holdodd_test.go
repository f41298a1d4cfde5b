package cellserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
)

// fake is a Client that answers by itself.
type fake func(command string, args []any) (any, error)

func (f fake) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	v, err := f(args[0].(string), args[1:])
	cmd.SetVal(v)
	cmd.SetErr(err)
	return cmd
}

// allows answers each command as a server that has room.
func allows(command string, args []any) (any, error) {
	one := []any{int64(0), int64(100), int64(50), int64(-1), int64(1)}
	switch command {
	case "CL.MRESERVE":
		reply := []any{int64(0)}
		for range args[0].(int) {
			reply = append(reply, any(one))
		}
		return append(reply, "id"), nil
	case "CL.CHECK":
		return one, nil
	case "PING":
		return "PONG", nil
	}
	return int64(1), nil
}

func faked(f fake) *cellserver.Limiter {
	return &cellserver.Limiter{Client: f, OnError: cellserver.Closed, Report: func(error) {}}
}

var errDial = &net.OpError{Op: "dial", Err: errors.New("refused")}

// TestHoldRefused has holds that no server would take refused when it is away, too.
func TestHoldRefused(t *testing.T) {
	many := []cellserver.Use{}
	for i := range 33 {
		many = append(many, use("org", fmt.Sprint(i), 1))
	}
	calls := 0
	l := faked(func(string, []any) (any, error) { calls++; return nil, errDial })
	l.OnError, l.LocalUnits = cellserver.Local, map[string]int64{"org": 100}
	for _, uses := range [][]cellserver.Use{
		{}, many, {use("org", "a", -1)}, {use("org", "a", 1), use("org", "b", 0)}, {use("org", "a", 60), use("org", "a", 60)},
	} {
		if h, err := l.Hold(t.Context(), time.Minute, uses...); err == nil {
			t.Errorf("%+v", h)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Hold(ctx, time.Minute, use("org", "a", 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := l.Settlements(); calls > 0 || got != (cellserver.Settlements{}) {
		t.Errorf("%d calls, %+v", calls, got)
	}
}

// TestSettleRefused has a server refuse a settlement, and then not.
func TestSettleRefused(t *testing.T) {
	for text, waits := range map[string]bool{
		"LOADING": true, "READONLY": true, "STOREDOWN": true, "BUSY": true, "MASTERDOWN": true, "OOM": true,
		"NOPERM": false, "WRONGPASS": false, "NOAUTH": false, "ERR": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			var refuses, commits int
			l := faked(func(command string, args []any) (any, error) {
				if command == "CL.MCOMMIT" {
					if commits++; refuses > 0 {
						refuses--
						return nil, refusal(text + " no")
					}
				}
				return allows(command, args)
			})
			h := holdFor(t, l, time.Hour, use("org", "a", 1))
			refuses = 3
			if err := h.Settle(t.Context(), 5); waits != (err == nil) || !waits && !errors.Is(err, cellserver.ErrMisconfigured) {
				t.Errorf("%s: %v", text, err)
			}
			check(t, l.Close(t.Context()))
			if got := l.Settlements(); waits != (commits == 4) || got != (cellserver.Settlements{}) {
				t.Errorf("%s: %d calls, %+v", text, commits, got)
			}
		})
	}
}

// TestTooManyHolds has a key full of holds: nothing has to be cancelled, and what was used is a debit.
func TestTooManyHolds(t *testing.T) {
	var full bool
	var log []string
	l := faked(func(command string, args []any) (any, error) {
		log = append(log, command)
		switch {
		case command == "CL.MRESERVE" && full:
			return nil, refusal("TOOMANYHOLDS the key 'org:a' has as many open holds as it may")
		case command == "CL.MCOMMIT": // the hold is lost
			return int64(0), nil
		}
		return allows(command, args)
	})
	h := holdFor(t, l, time.Hour, use("org", "a", 1))
	full = true
	if _, err := l.Hold(t.Context(), time.Minute, use("org", "a", 1)); err == nil {
		t.Error("held")
	}
	check(t, h.Settle(t.Context(), 5))
	if got := l.Settlements(); got != (cellserver.Settlements{}) || log[len(log)-1] != "CL.CHECK" {
		t.Errorf("%+v, %v", got, log)
	}
}

// TestNotSent has a settlement that surely was not sent before the server has lost the hold: it is charged.
func TestNotSent(t *testing.T) {
	for err, charged := range map[error]bool{errDial: true, io.EOF: false} {
		synctest.Test(t, func(t *testing.T) {
			var away, lost, reserved bool
			l := faked(func(command string, args []any) (any, error) {
				switch {
				case away:
					return nil, err
				case command == "CL.MRESERVE":
					reserved = lost
					lost = false
				case command == "CL.MCOMMIT" && lost:
					return int64(0), nil
				}
				return allows(command, args)
			})
			h := holdFor(t, l, time.Hour, use("org", "a", 1))
			away = true
			check(t, h.Settle(t.Context(), 5))
			lost, away = true, false
			check(t, l.Close(t.Context()))
			if reserved != charged {
				t.Errorf("%v: charged: %t", err, reserved)
			}
		})
	}
}

// TestManyCancels has a server that hangs while calls come: cancels leave room for settlements.
func TestManyCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := false
		l := faked(func(command string, args []any) (any, error) {
			if away {
				return nil, io.EOF
			}
			return allows(command, args)
		})
		open := []*cellserver.Hold{}
		for range 4000 {
			open = append(open, holdFor(t, l, time.Hour, use("org", "a", 1)))
		}
		away = true
		for range 20_000 {
			_, _ = l.Hold(t.Context(), time.Minute, use("org", "a", 1))
		}
		for _, h := range open {
			check(t, h.Settle(t.Context(), 1))
		}
		if got := l.Settlements(); got.Waiting != 5_000+len(open) || got.GivenUp != 15_000 {
			t.Errorf("%+v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || l.Settlements().Waiting > 0 {
			t.Errorf("%v, %+v", err, l.Settlements())
		}
	}) // no goroutine is left
}

// TestOddCounts has counts of a stream that are none.
func TestOddCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		count func(n int) []int64
		want  string
	}{
		"negative":  {func(n int) []int64 { return []int64{int64(n%2)*2 - 1, 1} }, "[org a 2 org b 2]"},
		"too many":  {func(int) []int64 { return []int64{1, 1, 1} }, "[org a 0 org b 0]"},
		"of all":    {func(n int) []int64 { return []int64{1, 1, 1}[:1+n%2] }, "[org a 4 org b 4]"},
		"too large": {func(int) []int64 { return []int64{math.MaxInt64} }, ""},
		"a panic":   {func(int) []int64 { panic("a count") }, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			committed, reports := "", 0
			l := faked(func(command string, args []any) (any, error) {
				if command == "CL.MCOMMIT" {
					committed = fmt.Sprint(args[2:])
				}
				return allows(command, args)
			})
			l.Report = func(error) { reports++ }
			func() {
				defer func() { _ = recover() }()
				h := holdFor(t, l, time.Hour, use("org", "a", 1), use("org", "b", 1))
				defer h.Close()
				n := -1
				for _, err := range cellserver.Stream(t.Context(), h, tokens(4, nil), func(string) []int64 { n++; return tt.count(n) }) {
					if err != nil {
						t.Error(err)
					}
				}
			}()
			if committed != tt.want || (reports > 0) != (name != "of all") {
				t.Errorf("%s: %s, %d reports", name, committed, reports)
			}
		}) // the goroutine that extends has ended
	}
}

// TestStreamEndsSilently has chunks that end, without an error, as the client is gone.
func TestStreamEndsSilently(t *testing.T) {
	committed := ""
	l := faked(func(command string, args []any) (any, error) {
		if command == "CL.MCOMMIT" {
			committed = fmt.Sprint(args[2:])
		}
		return allows(command, args)
	})
	ctx, cancel := context.WithCancel(t.Context())
	h := holdFor(t, l, time.Hour, use("org", "a", 40))
	for chunk, err := range cellserver.Stream(ctx, h, func(func(string, error) bool) { cancel() }, nil) {
		t.Error(chunk, err)
	}
	if committed != "[org a 40]" {
		t.Error(committed)
	}
}

// TestHoldAtOnce has one hold used by many: one settlement is sent.
func TestHoldAtOnce(t *testing.T) {
	for _, away := range []bool{false, true} {
		var mu sync.Mutex
		commits := []string{}
		l := faked(func(command string, args []any) (any, error) {
			if away {
				return nil, errDial
			}
			mu.Lock()
			defer mu.Unlock()
			if command == "CL.MCOMMIT" {
				commits = append(commits, fmt.Sprint(args[2:]))
			}
			return allows(command, args)
		})
		l.OnError, l.LocalUnits = cellserver.Local, map[string]int64{"org": 100}
		h := holdFor(t, l, time.Hour, use("org", "a", 1))
		var all sync.WaitGroup
		for i := range int64(20) {
			all.Go(func() { _ = h.Settle(t.Context(), i) })
			all.Go(func() { _, _ = h.Extend(t.Context(), time.Hour); h.Close(); h.Counted() })
			all.Go(func() { defer h.Keep(t.Context())() })
		}
		all.Wait()
		if waiting := l.Settlements().Waiting; !away && len(commits) != 1 || away && waiting != 1 {
			t.Errorf("%v, %d wait", commits, waiting)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = l.Close(ctx)
		_ = l.Close(ctx)
	}
}

// TestHugeLocalUnits has models that say nonsense while cellserver is away: no sum of it makes room.
func TestHugeLocalUnits(t *testing.T) {
	l := faked(func(string, []any) (any, error) { return nil, errDial })
	l.OnError, l.LocalUnits = cellserver.Local, map[string]int64{"org": 100}
	holds := []*cellserver.Hold{}
	for range 4 {
		holds = append(holds, holdFor(t, l, time.Hour, use("org", "a", 25)))
	}
	for _, h := range holds {
		check(t, h.Settle(t.Context(), math.MaxInt64))
	}
	if h, err := l.Hold(t.Context(), time.Hour, use("org", "a", 1)); err != nil || h.Allowed {
		t.Errorf("%+v, %v", h, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Close(ctx)
	if h := holdFor(t, l, time.Hour, use("org", "a", 1)); h.Results[0].Remaining != 99 { // all is given up
		t.Errorf("%+v", h)
	}
}

// TestNoteUnlimited has a hold of which the server keeps nothing: a journal is told of its end, too.
func TestNoteUnlimited(t *testing.T) {
	l := faked(func(command string, _ []any) (any, error) {
		if command != "CL.MRESERVE" {
			t.Error(command)
		}
		const most = int64(math.MaxInt64)
		return []any{int64(0), []any{int64(0), most, most, int64(-1), int64(0)}, "id"}, nil
	})
	noted := []string{}
	l.Note = func(id string, s cellserver.Stage) { noted = append(noted, fmt.Sprint(id, s == cellserver.Settled)) }
	h := holdFor(t, l, time.Hour, use("org", "free", 1))
	check(t, h.Settle(t.Context(), 5))
	check(t, h.Settle(t.Context(), 5))
	if !slices.Equal(noted, []string{h.ID() + "true"}) {
		t.Error(strings.Join(noted, ", "))
	}
}
