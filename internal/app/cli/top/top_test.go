package top

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// peer is a server whose counters follow the clock, and that is away at times.
type peer struct {
	start        time.Time
	away         func(sinceStart time.Duration) error
	refusesLimit error
}

func (*peer) Name() string { return "peer:1" }

func (p *peer) Do(ctx context.Context, commands ...[]any) (replies []any, err error) {
	up := time.Since(p.start)
	if err := p.away(up); err != nil {
		return nil, err
	}
	n := int64(up / time.Second)
	for _, c := range commands {
		switch words := strings.Trim(fmt.Sprint(c), "[]"); words {
		case "INFO server clients memory stats":
			replies = append(replies, fmt.Sprintf("# Server\r\ncellserver_version:0.3.0\r\nserver_time_usec:%d\r\nuptime_in_seconds:%d\r\ncell_allowed:%d\r\nrun_id:%t\r\n",
				p.start.Add(up).UnixMicro(), n, 10*n, up < time.Minute))
		case "CL.TOP REQUESTED COUNT 256 WITHNAMES":
			replies = append(replies, []any{
				[]any{"key", "slow", "database", int64(0), "share", "0.2", "calls_per_second", "7", "recent_calls_per_second", "1.5"},
				[]any{"key", "new", "database", int64(1), "share", "0.1", "calls_per_second", "2", "recent_calls_per_second", nil},
				"strange",
			})
		case "CL.TOP LIMITED COUNT 256 WITHNAMES":
			replies = append(replies, []any{[]any{"key", "new", "database", int64(1), "share", "1", "calls_per_second", "0.5", "recent_calls_per_second", nil}})
		case "CL.LIMIT LIST":
			if p.refusesLimit != nil {
				return nil, p.refusesLimit
			}
			replies = append(replies, []any{"api", "gone"})
		case "CL.LIMIT GET api":
			replies = append(replies, []any{"name", "api", "shadow", int64(0), "allowed", 5 * n, "policy", "DENY"})
		case "CL.LIMIT GET gone":
			replies = append(replies, nil)
		default:
			return nil, errors.New("no reply to " + words)
		}
	}
	return replies, ctx.Err()
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

var _ redis.Error = refusal("")

// TestText: blocks of rates, a line when the server goes away and one when it is back, and no rates across a
// restart.
func TestText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{start: time.Now(), away: func(up time.Duration) error {
			if up > 3*time.Second && up < time.Minute+time.Second {
				return errors.New("peer:1: connection refused; check it")
			}
			return nil
		}}
		var out, problems strings.Builder
		if err := Run(t.Context(), Options{Server: p, Interval: 2 * time.Second, Rounds: 3, Out: &out, Err: &problems}); err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(out.String(), "\n\n20")
		if len(blocks) != 3 {
			t.Fatalf("%d blocks: %s", len(blocks), out.String())
		}
		for i, want := range []string{"\n10 allowed/s, ", "\n- allowed/s, ", "\n10 allowed/s, "} {
			if !strings.Contains(blocks[i], want) {
				t.Errorf("no %q in\n%s", want, blocks[i])
			}
		}
		const rows = " CALLS/S  LIMITED/S  OF CALLS  KEY\n" +
			"       2       0.50      10 %  new  (db 1)\n" +
			"    1.50          -      20 %  slow\n\n" +
			"Named limits\n" +
			"ALLOWED/S  LIMITED/S  SHADOW/S    NEAR/S  LIMIT\n" +
			"        5          0         0         0  api  DENY"
		if !strings.Contains(blocks[0], rows) {
			t.Errorf("got\n%s\nwant\n%s", blocks[0], rows)
		}
		since, again := p.start.Add(4*time.Second).Format(time.TimeOnly), p.start.Add(62*time.Second).Format(time.TimeOnly)
		if want := "cellserver: top: No answer since " + since + ", trying again: peer:1: connection refused; check it\n" +
			"cellserver: top: Connected again at " + again + ", after 58s; the server has restarted\n"; problems.String() != want {
			t.Errorf("got %s, want %s", problems.String(), want)
		}
	})
}

// TestEnd: the first answer must come; the end of ctx is no error, whenever it comes.
func TestEnd(t *testing.T) {
	t.Parallel()
	always := func(err error) func(time.Duration) error { return func(time.Duration) error { return err } }
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			peer *peer
			want string
		}{
			{&peer{away: always(errors.New("peer:1: connection refused; check it"))}, "top: peer:1: connection refused; check it"},
			{&peer{away: always(refusal("ERR syntax error"))}, "top: ERR syntax error; it is older than 0.3.0, use its version of cellserver"},
			{&peer{away: always(nil), refusesLimit: errors.New("EOF")}, "top: EOF"},
			{&peer{away: always(nil), refusesLimit: refusal("NOPERM no")}, ""},
		} {
			ctx, end := context.WithTimeout(t.Context(), 5*time.Second)
			tt.peer.start = time.Now()
			var out strings.Builder
			got := ""
			if err := Run(ctx, Options{Server: tt.peer, Interval: time.Second, Out: &out}); err != nil {
				got = err.Error()
			}
			end()
			if got != tt.want || tt.want == "" && !strings.Contains(out.String(), "\nNamed limits: NOPERM no\n") {
				t.Errorf("got %q, want %q; printed %s", got, tt.want, out.String())
			}
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := Run(ctx, Options{Server: &peer{away: func(time.Duration) error { return ctx.Err() }}, Interval: time.Second}); err != nil {
			t.Error(err)
		}
	})
}
