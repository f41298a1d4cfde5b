package session_test

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestCrossProtocol: a browser's HTTP request is cut off, and nothing after it is executed.
func TestCrossProtocol(t *testing.T) {
	const throttle = "CL.THROTTLE k 0 1 60\r\n"
	for _, tt := range []struct {
		name, in string
		settings []func(*commands.Config)
	}{
		{name: "POST", in: "POST / HTTP/1.1\r\n"},
		{name: "post", in: "post /\r\n"},
		{name: "POST in RESP", in: resptest.Encode("POST", "/")},
		{name: "POST and a whole request", in: "POST / HTTP/1.1\r\nHost: localhost:6380\r\nContent-Length: 22\r\n\r\n"},
		{name: "a header", in: "Host: localhost:6380\r\n"},
		{name: "a header in lower case", in: "host: localhost:6380\r\n"},
		{name: "a header behind GET", in: "GET / HTTP/1.1\r\nHost: localhost:6380\r\n\r\n"},
		{name: "before AUTH", in: "POST / HTTP/1.1\r\n", settings: []func(*commands.Config){commandstest.WithPassword("secret")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := commandstest.New(tt.settings...)
			_, left, status := commandstest.Converse(t, r.Session(), tt.in+throttle)
			if status != peer.Abort || !strings.HasSuffix(left, throttle) {
				t.Errorf("status %d, and left %q", status, left)
			}
			if st := r.Stats(); st.Keys != 0 || st.Allowed != 0 {
				t.Errorf("what stood behind it was executed: %+v", st)
			}
			if got := r.Log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") ||
				!strings.Contains(got, "possible attack") || !strings.Contains(got, "client=192.0.2.1:5000 count=1") {
				t.Errorf("logged %q", got)
			}
		})
	}
}

// TestNotCrossProtocol: such a word alone is an unknown command.
func TestNotCrossProtocol(t *testing.T) {
	for _, in := range []string{"GET / HTTP/1.1", "HEAD /", "POSTS", "Host localhost", "Host:localhost", "ECHO POST", `"POST "`} {
		r := commandstest.New()
		if _, _, status := commandstest.Converse(t, r.Session(), in+"\r\n"); status != peer.NeedInput || r.Log.Len() > 0 {
			t.Errorf("%q: status %d, logged %q", in, status, r.Log.String())
		}
	}
}

// TestCrossProtocolIsLoggedOnceAMinute for all clients, with the count.
func TestCrossProtocolIsLoggedOnceAMinute(t *testing.T) {
	r := commandstest.New()
	for _, step := range []struct {
		after  time.Duration
		attack int
		want   string // or ""
	}{
		{0, 1, "count=1"},
		{0, 1, ""},
		{59 * time.Second, 3, ""},
		// the four before and the first of these; the next line reports the other
		{time.Second, 2, "count=5"},
		{time.Minute - 1, 1, ""},
		{1, 1, "count=3"},
		{time.Hour, 1, "count=1"},
	} {
		r.Clock.Advance(int64(step.after))
		for range step.attack {
			commandstest.Converse(t, r.Session(), "POST / HTTP/1.1\r\n")
		}
		if got := r.Log.String(); strings.Count(got, "count=") != min(1, len(step.want)) || !strings.Contains(got, step.want) {
			t.Errorf("after %v more: logged %q, want %q", step.after, got, step.want)
		}
		r.Log.Reset()
	}
}
