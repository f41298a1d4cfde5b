package connection_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/reply"
)

const (
	optIn       = "*6\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$5\r\noptin\r\n$8\r\nredirect\r\n:0\r\n$8\r\nprefixes\r\n*0\r\n"
	notTracking = "*6\r\n$5\r\nflags\r\n*1\r\n$3\r\noff\r\n$8\r\nredirect\r\n:-1\r\n$8\r\nprefixes\r\n*0\r\n"
)

// TestTracking refuses what makes a client cache unasked, with what to set, and leaves the mode as it was.
func TestTracking(t *testing.T) {
	refused := "-" + string(reply.ErrNoTracking) + "\r\n"
	const ok, syntax, notInteger = "+OK\r\n", "-ERR syntax error\r\n", "-ERR value is not an integer or out of range\r\n"
	for _, tt := range []struct{ call, want, info string }{
		{"ON OPTIN", ok, optIn},
		{"on optin OptIn", ok, optIn},
		{"ON", refused, ""},
		{"ON BCAST", refused, ""},
		{"ON OPTOUT", refused, ""},
		{"ON NOLOOP", refused, ""},
		{"ON OPTIN NOLOOP", refused, ""},
		{"ON OPTIN OPTOUT", refused, ""},
		{"ON BCAST PREFIX a PREFIX b", refused, ""},
		{"ON OPTIN PREFIX optin", refused, ""},
		{"ON PREFIX OPTIN", refused, ""},
		{"ON REDIRECT 1", refused, ""},
		{"ON OPTIN REDIRECT 1", refused, ""},
		{"OFF", ok, notTracking},
		{"OFF OPTIN BCAST OPTOUT NOLOOP PREFIX a REDIRECT 1", ok, notTracking},
		{"ON BCAST FOO", syntax, ""},
		{"ON OPTIN PREFIX", syntax, ""},
		{"ON REDIRECT", syntax, ""},
		{"x OPTIN", syntax, ""},
		{"x BCAST", syntax, ""},
		{"OFF FOO", syntax, ""},
		{"x REDIRECT y", notInteger, ""},
	} {
		for before, info := range map[string]string{"OFF": notTracking, "ON OPTIN": optIn} {
			s := commandstest.New().Session()
			commandstest.Say(t, s, "CLIENT TRACKING "+before+"\r\n")
			if tt.info != "" {
				info = tt.info
			}
			if got := commandstest.Say(t, s, "CLIENT TRACKING "+tt.call+"\r\n"); got != tt.want {
				t.Errorf("%s after %s: got %q, want %q", tt.call, before, got, tt.want)
			}
			if got := commandstest.Say(t, s, "CLIENT TRACKINGINFO\r\n"); got != info {
				t.Errorf("%s after %s: %q, want %q", tt.call, before, got, info)
			}
		}
	}
	for _, e := range []reply.Error{reply.ErrNoTracking, reply.ErrNotCached} {
		for _, setting := range []string{"cache_config", "CacheConfig", "clientSideCache", "ClientSideCacheConfig", "DisableCache"} {
			if !strings.Contains(string(e), setting) || strings.ContainsAny(string(e), "\r\n") {
				t.Errorf("%q must name %s, on one line", e, setting)
			}
		}
	}
}

// TestTrackingEnds: RESET, and HELLO with a version, begin a connection anew.
func TestTrackingEnds(t *testing.T) {
	for _, tt := range []struct{ call, want string }{
		{"RESET", notTracking}, {"HELLO 2", notTracking}, {"HELLO", optIn}, {"HELLO 4", optIn}, {"HELLO 2 FOO", optIn},
	} {
		s := commandstest.New().Session()
		commandstest.Say(t, s, "CLIENT TRACKING ON OPTIN\r\n"+tt.call+"\r\n")
		if got := commandstest.Say(t, s, "CLIENT TRACKINGINFO\r\n"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.call, got, tt.want)
		}
	}
}

// TestNotCached: clients send CLIENT CACHING YES and what they cache in one pipeline, and some cache the
// reply whatever the first command got.
func TestNotCached(t *testing.T) {
	const aborted = "EXECABORT Transaction discarded because of previous errors."
	not := "-" + string(reply.ErrNotCached) + "\r\n"
	for _, tt := range []struct {
		name, calls string
		want        []string // after CLIENT CACHING YES
	}{
		{"a command", "GET n|GET n", []string{not, "$1\r\n1\r\n"}},
		{"a change", "INCR n|INCR n", []string{not, ":2\r\n"}},
		{"a limit", "CL.THROTTLE k 1 1 60|EXISTS k", []string{not, ":0\r\n"}},
		{"a script", "EVAL_RO return{} 0|EVAL_RO return{} 0", []string{not, "*0\r\n"}},
		{"as rueidis does", "MULTI|PTTL n|GET n|EXEC|GET n", []string{"+OK\r\n", not, not, "-" + aborted + "\r\n", "$1\r\n1\r\n"}},
		{"as redis-rs does", "PTTL n|GET n|PTTL n", []string{not, not, ":-1\r\n"}},
		{"twice", "CLIENT CACHING YES|GET n|GET n", []string{not, not, "$1\r\n1\r\n"}},
		{"a command without keys between", "PING|GET n|GET n", []string{"+PONG\r\n", not, "$1\r\n1\r\n"}},
		{"a discarded transaction", "MULTI|DISCARD|GET n", []string{"+OK\r\n", "+OK\r\n", "$1\r\n1\r\n"}},
		{"an unknown command", "FOO|GET n", []string{"-ERR unknown command 'FOO', with args beginning with: \r\n", "$1\r\n1\r\n"}},
		{"tracking ends", "CLIENT TRACKING OFF|GET n", []string{"+OK\r\n", "$1\r\n1\r\n"}},
		{"a new beginning", "RESET|GET n", []string{"+RESET\r\n", "$1\r\n1\r\n"}},
	} {
		s := commandstest.New().Session()
		commandstest.Say(t, s, "INCR n\r\nCLIENT TRACKING ON OPTIN\r\n")
		calls := "CLIENT CACHING YES\r\n" + strings.ReplaceAll(tt.calls, "|", "\r\n") + "\r\n" // in one pipeline
		if got, want := commandstest.Say(t, s, calls), not+strings.Join(tt.want, ""); got != want {
			t.Errorf("%s: got %q, want %q", tt.name, got, want)
		}
	}
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CLIENT TRACKING ON OPTIN\r\nMULTI\r\nCLIENT CACHING YES\r\nINCR n\r\n")
	if got, want := commandstest.Say(t, s, "EXEC\r\nGET n\r\n"), "*2\r\n"+not+":1\r\n$1\r\n1\r\n"; got != want {
		t.Errorf("inside a transaction: got %q, want %q", got, want)
	}
}
