package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
	"cellserver/internal/app/usage"
	"cellserver/internal/test/redistest"
)

// watcher runs cellserver shadow, and calls while it follows.
func watcher(t *testing.T, calls func(), args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &notifier{text: "following", notify: func() {
		go func() {
			defer cancel()
			calls()
		}()
	}}
	var out bytes.Buffer
	err = app.Run(ctx, append([]string{"shadow"}, args...), strings.NewReader(""), &out, stderr)
	return out.String(), err
}

// notifier closes a channel when a text is written to it.
type notifier struct {
	text   string
	notify func()
	once   sync.Once
}

func (n *notifier) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(n.text)) {
		n.once.Do(n.notify)
	}
	return len(b), nil
}

// throttleAll makes calls of all shapes by several clients on few keys. Scripts and transactions are left
// out: they run beside the event loop.
func throttleAll(t *testing.T, options *redis.Options, rounds int) {
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			o := *options
			o.DB, o.Protocol, o.DisableIdentity = worker%2, 2, true
			client := redistest.NewClient(t, o)
			for round := range rounds {
				_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for i := range 10 {
						key := "a key \"" + string(rune('a'+i%7)) + "\""
						p.Do(t.Context(), "CL.THROTTLE", key, i%5, 4, 100, i%3)
						p.Do(t.Context(), "cl.refund", key, 3, 40, 10)
						p.Do(t.Context(), "CL.PTHROTTLE", key, 2, 30, 50_000)
						p.Do(t.Context(), "cl.tokenbucket", key, 2, 1, 30, 1)
					}
					return nil
				})
				if err == nil && round%10 == 0 {
					err = client.Del(t.Context(), "a key \"c\"").Err()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// TestShadow follows a cellserver whose single event loop shows calls in order of execution.
func TestShadow(t *testing.T) {
	t.Parallel()
	const rounds = 50
	p := harness.StartServer(t, "--io-threads", "1")
	options := &redis.Options{Addr: p.Addr}
	out, err := watcher(t, func() { throttleAll(t, options, rounds) }, "--from", p.Addr, "--tolerance", "500ms", "--rate", "20000")
	if err != nil || !strings.HasPrefix(out, "calls                            8000\n") || !strings.Contains(out, "\ndifferences                      0\n") {
		t.Errorf("got %v and\n%s", err, out)
	}
	out, err = watcher(t, func() { throttleAll(t, options, rounds) }, "--from", p.Addr, "--tolerance", "500ms", "--burst-is-capacity", "--json")
	if err == nil || !strings.HasPrefix(err.Error(), "shadow: ") || !strings.HasSuffix(err.Error(), " differences") {
		t.Errorf("with another reading: got %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var first struct {
		Difference struct{ Key, Call string }
	}
	var last struct {
		Summary struct{ Calls, Differences int }
	}
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || !strings.HasPrefix(first.Difference.Key, `a key "`) {
		t.Errorf("%v: %s", err, lines[0])
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Summary.Calls != 8000 || last.Summary.Differences != len(lines)-1 {
		t.Errorf("%v: %s", err, lines[len(lines)-1])
	}
}

// TestShadowLogsIn over TLS, as a user with only the rights that the help names.
func TestShadowLogsIn(t *testing.T) {
	t.Parallel()
	files, _ := harness.NewTLSFiles(t)
	users := harness.WriteFile(t, "user default on nopass ~* +@all\nuser watcher on >secret ~* +monitor +get +select +ping\n")
	password := harness.WriteFile(t, "secret\n")
	p := harness.StartServer(t, append(files.Flags(), "--io-threads", "1", "--aclfile", users)...)
	client := harness.Database(t, p, 0)
	calls := func() { // calls without effect: TLS connections are not on the loop, so their order is unknown
		for i := range 10 {
			before := reads(t, client)
			if err := client.Do(t.Context(), "CL.THROTTLE", "k", 1, 1, 1, 0).Err(); err != nil {
				t.Error(err)
			}
			if i == 0 { // later calls are compared
				p.Eventually(t, "be read", func() bool { return reads(t, client) > before })
			}
		}
	}
	for _, args := range [][]string{
		{"--from", p.TLSAddr, "--user", "watcher", "--password-file", password, "--tls", "--tls-ca", files.ClientCA, "--tls-server-name", "localhost"},
		{"--from", "redis://watcher:secret@" + p.Addr},
	} {
		out, err := watcher(t, calls, args...)
		if err != nil || !strings.HasPrefix(out, "calls                            10\n") {
			t.Errorf("%q: got %v and\n%s", args, err, out)
		}
	}
	_, err := watcher(t, calls, "--from", "redis://watcher:wrong@"+p.Addr)
	if err == nil || !strings.Contains(err.Error(), "check the user, and the password of --password-file or REDISCLI_AUTH") {
		t.Errorf("a wrong password: %v", err)
	}
}

// reads returns how many GETs a server has executed.
func reads(t *testing.T, client *redis.Client) (n int) {
	t.Helper()
	_, after, found := strings.Cut(client.Info(t.Context(), "commandstats").Val(), "cmdstat_get:calls=")
	if _, err := fmt.Sscan(strings.ReplaceAll(after, ",", " "), &n); found && err != nil {
		t.Error(err)
	}
	return n
}

// TestShadowOfNothing: what has compared nothing says so, and why, and fails.
func TestShadowOfNothing(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t, "--io-threads", "1")
	client := harness.Database(t, p, 0)
	do := func(args ...any) {
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Error(err)
		}
	}
	once := func(key string) {
		before := reads(t, client)
		do("CL.THROTTLE", key, 1, 1, 60)
		p.Eventually(t, "be read", func() bool { return reads(t, client) > before })
	}
	for _, tt := range []struct {
		calls func()
		json  bool
		want  string
	}{
		{func() { do("PING") }, false, "no CL.THROTTLE was seen; follow the Redis that the clients call, each primary of a cluster by itself, while they call it"},
		{func() { do("PING") }, true, "no CL.THROTTLE was seen; follow the Redis that the clients call, each primary of a cluster by itself, while they call it"},
		{func() { do("CL.FIXEDWINDOW", "w", 1, 60) }, false, "only calls of limiters that redis-cell does not have were seen; follow the Redis that the clients send CL.THROTTLE to"},
		{func() { once("a"); once("b") }, false, "no key was called again after its first call, which is only checked for being possible; follow longer (--for)"},
		{func() { do("CL.FIXEDWINDOW", "x", 1, 60); _ = client.Do(t.Context(), "CL.THROTTLE", "x", 1, 1, 60) }, false, ""},
	} {
		args := []string{"--from", p.Addr}
		if tt.json {
			args = append(args, "--json")
		}
		out, err := watcher(t, tt.calls, args...)
		if err == nil || !strings.HasPrefix(err.Error(), "shadow: nothing was compared: "+tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if !tt.json && strings.Contains(out, "differences") {
			t.Errorf("it says\n%s", out)
		}
	}
}

func TestShadowFlags(t *testing.T) {
	const want = "want host:port, such as 127.0.0.1:6379, or a URL such as redis://user@host:port, or rediss:// for TLS"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "shadow: --from is missing: give the host:port of a Redis; see cellserver shadow --help"},
		{[]string{"--from", "localhost"}, "shadow: --from: " + want},
		{[]string{"--from", "unix:///run/redis"}, "shadow: --from: " + want},
		{[]string{"--from", "watcher:secret@a:1"}, "shadow: --from: " + want},
		{[]string{"--from", "a:1", "--user", "watcher"}, "shadow: --from: a user requires a password; give it by --password-file or REDISCLI_AUTH"},
		{[]string{"--from", "a:1", "--tls-ca", "x"}, "shadow: TLS flags require --tls, or a URL that begins with rediss://"},
		{[]string{"--from", "a:1", "--tls-client-cert", "x"}, "shadow: --tls-client-cert and --tls-client-key require each other; set both"},
		{[]string{"--from", "a:1", "--tls", "--tls-ca", os.DevNull}, "shadow: --tls-ca: " + os.DevNull + " has no certificate in PEM"},
		{[]string{"x"}, `shadow takes no argument, got "x"`},
	} {
		err := app.Run(t.Context(), append([]string{"shadow"}, tt.args...), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
		var usage usage.Error
		if err == nil || err.Error() != tt.want || !errors.As(err, &usage) {
			t.Errorf("%q: got %v, want %s", tt.args, err, tt.want)
		}
	}
}
