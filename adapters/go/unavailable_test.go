package cellserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	cellserver "cellserver/adapters/go"
	"cellserver/adapters/go/internal/servertest"
)

func isMistake(err error) bool { return errors.Is(err, cellserver.ErrMisconfigured) }

// TestMistakes has each mistake with a server, in each mode, by each way to ask.
func TestMistakes(t *testing.T) {
	f := cellserver.Funnel{MaxBurst: 9, Count: 1, Period: time.Hour}
	for _, tt := range []struct{ rules, want string }{
		{"on nopass ~* +@all", "no such limit"},
		{"on nopass ~* +ping", "NOPERM"},
		{"on >secret ~* +@all", "NOAUTH"},
	} {
		addr := serveUser(t, tt.rules)
		for _, onError := range []cellserver.OnError{cellserver.Open, cellserver.Closed, cellserver.Local} {
			l, reported := patient(t, addr, onError), 0
			l.Report = func(error) { reported++ }
			r, err := l.Allow(t.Context(), "api", "k", 1)
			errs := []error{err, l.Wait(t.Context(), "api", "k", 1)}
			if tt.want != "no such limit" { // Reserve has no names
				errs = append(errs, reserve(l, f, 1, long))
			}
			for i, err := range errs {
				if !isMistake(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s, %d, way %d: %v", tt.want, onError, i, err)
				}
			}
			if r.Allowed || reported != len(errs) {
				t.Errorf("%s, %d: %+v, %d reported", tt.want, onError, r, reported)
			}
			m := cellserver.Middleware{Limiter: l, Limit: "api", Key: cellserver.ByAddress()}
			if status, headers := send(t, m.Handler(ok), from("192.0.2.1")); status != 500 || headers != "" {
				t.Errorf("%s, %d: status %d, %s", tt.want, onError, status, headers)
			}
		}
	}
}

// serveUser starts a server whose default user has these rules.
func serveUser(t *testing.T, rules string) (addr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user default "+rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return servertest.Start(t, binary, "--aclfile="+file).Addr
}

// TestWrongPassword calls once, as the server delays each reply more than the one before.
func TestWrongPassword(t *testing.T) {
	o := servertest.Patient(cellserver.Options(serveUser(t, "on >secret ~* +@all")))
	o.Password = "wrong"
	r, err := limiterOf(t, o, cellserver.Open, long).Allow(t.Context(), "api", "k", 1)
	if r.Allowed || !isMistake(err) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("%+v, %v", r, err)
	}
}

// refusal is an error that a server answers.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// failing is a Client whose calls fail.
type failing struct{ err error }

func (f failing) Do(ctx context.Context, _ ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(f.err)
	return cmd
}

func TestUnavailable(t *testing.T) {
	sentinels := errors.Join(refusal("NOAUTH Authentication required."), redis.Nil)
	for _, tt := range []struct {
		err     error
		mistake bool
	}{
		{errors.New("NOPERM is not the server's"), false},
		{context.DeadlineExceeded, false},
		{fmt.Errorf("all sentinels are unreachable: %w", sentinels), false},
		{refusal("OOM command not allowed when used memory > 'maxmemory'."), false},
		{fmt.Errorf("failed to authenticate: %w", refusal("LOADING x")), false},
		{refusal("READONLY x"), false},
		{refusal("STOREDOWN x"), false},
		{refusal("MISCONF x"), false},
		{refusal("ERR max number of clients per address reached"), false},
		{refusal("ERR 5 new keys per second from this address, the limit"), false},
		{refusal("ERR the store failed: x"), false},
		{refusal("ERR conflicts with other clients lasted longer"), false},
		{refusal("ERR the command was ended before it was done: x"), false},
		{fmt.Errorf("failed to authenticate: %w", refusal("WRONGPASS x")), true},
		{refusal("ERR no such limit 'OOM'"), true},
		{refusal("ERR unknown command 'CL.CHECK'"), true},
		{refusal("WRONGTYPE x"), true},
		{redis.Nil, true},
	} {
		l := &cellserver.Limiter{Client: failing{tt.err}, Report: func(error) {}}
		r, err := l.Allow(t.Context(), "api", "k", 1)
		if r.Allowed == tt.mistake || isMistake(err) != tt.mistake {
			t.Errorf("%v: %+v, %v", tt.err, r, err)
		}
	}
	l := &cellserver.Limiter{Client: scripted(func() []any { return []any{"what"} }), Report: func(error) {}}
	if _, err := l.Allow(t.Context(), "api", "k", 1); !isMistake(err) {
		t.Errorf("no decision: %v", err)
	}
}
