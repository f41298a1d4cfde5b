package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/catalog"
	"cellserver/internal/commands"
	"cellserver/internal/commands/rig"
	"cellserver/internal/peer"
	"cellserver/internal/resptest"
)

// TestCrossProtocol: a web page that reaches for the port is cut off, and nothing behind it is executed.
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
		{name: "before AUTH", in: "POST / HTTP/1.1\r\n", settings: []func(*commands.Config){rig.WithPassword("secret")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rig.New(tt.settings...)
			_, left, status := rig.Converse(t, r.Session(), tt.in+throttle)
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

// TestNotCrossProtocol: a name alone is an unknown command.
func TestNotCrossProtocol(t *testing.T) {
	for _, in := range []string{"GET / HTTP/1.1", "HEAD /", "POSTS", "Host localhost", "Host:localhost", "ECHO POST", `"POST "`} {
		r := rig.New()
		if _, _, status := rig.Converse(t, r.Session(), in+"\r\n"); status != peer.NeedInput || r.Log.Len() > 0 {
			t.Errorf("%q: status %d, logged %q", in, status, r.Log.String())
		}
	}
}

// TestCrossProtocolIsLoggedOnceAMinute, whoever it is, with how many it were.
func TestCrossProtocolIsLoggedOnceAMinute(t *testing.T) {
	r := rig.New()
	for _, step := range []struct {
		after  time.Duration
		attack int
		want   string // logged, "" for nothing
	}{
		{0, 1, "count=1"},
		{0, 1, ""},
		{59 * time.Second, 3, ""},
		{time.Second, 2, "count=5"}, // the four before, and the first of these; the other is told the next time
		{time.Minute - 1, 1, ""},
		{1, 1, "count=3"},
		{time.Hour, 1, "count=1"},
	} {
		r.Clock.Advance(int64(step.after))
		for range step.attack {
			rig.Converse(t, r.Session(), "POST / HTTP/1.1\r\n")
		}
		if got := r.Log.String(); strings.Count(got, "count=") != min(1, len(step.want)) || !strings.Contains(got, step.want) {
			t.Errorf("after %v more: logged %q, want %q", step.after, got, step.want)
		}
		r.Log.Reset()
	}
}

// TestFeedStopsWhenRepliesAreLong, so that a short input cannot fill the memory.
func TestFeedStopsWhenRepliesAreLong(t *testing.T) {
	const list, calls = "COMMAND LIST\r\n", 1000
	r := rig.New()
	s := r.Session()
	one := rig.Say(t, s, list)
	buf, before, feeds, total := []byte(strings.Repeat(list, calls)), strings.Repeat("x", 1000), 0, 0
	for {
		n, out, status := s.Feed(buf, []byte(before)) // what is pending already does not count
		buf, feeds = buf[n:], feeds+1
		out = out[len(before):]
		if total += len(out); string(out) != strings.Repeat(one, len(out)/len(one)) {
			t.Fatalf("feed %d: the replies are others", feeds)
		}
		if len(out) >= feedBytes+len(one) {
			t.Errorf("feed %d: %d bytes of replies", feeds, len(out))
		}
		if status == peer.NeedInput {
			break
		}
		if status != peer.More || len(out) < feedBytes {
			t.Fatalf("feed %d: status %d after %d bytes", feeds, status, len(out))
		}
	}
	if len(buf) > 0 || total != calls*len(one) || feeds < calls*len(one)/(feedBytes+len(one)) {
		t.Errorf("%d bytes left, %d bytes of replies in %d feeds", len(buf), total, feeds)
	}
}

// TestUnauthenticatedFeedStopsEarly: CVE-2025-21605.
func TestUnauthenticatedFeedStopsEarly(t *testing.T) {
	longest := 0
	s := rig.New(rig.WithPassword("secret")).Session()
	inputs := []string{"PING\r\n", "HELLO\r\n", resptest.Encode(strings.Repeat("\x00", 128), strings.Repeat("\x00", 128)), "RESET\r\n", "AUTH\r\n"}
	for _, in := range inputs {
		longest = max(longest, len(rig.Say(t, s, in)))
	}
	buf := []byte(strings.Repeat(strings.Join(inputs, ""), 100))
	for len(buf) > 0 {
		n, out, status := s.Feed(buf, nil)
		buf = buf[n:]
		if len(out) >= peer.UnauthenticatedOutput+longest || n == 0 {
			t.Fatalf("%d bytes of replies, status %d, %d bytes consumed", len(out), status, n)
		}
	}
	if s.Authenticated() || !rig.New().Session().Authenticated() {
		t.Error("Authenticated is wrong")
	}
	rig.Say(t, s, "AUTH secret\r\n")
	if _, out, status := s.Feed([]byte(strings.Repeat("PING\r\n", 1000)), nil); len(out) != 1000*len(rig.Pong) || status != peer.NeedInput || !s.Authenticated() {
		t.Errorf("after AUTH: %d bytes of replies, status %d", len(out), status)
	}
}

// TestUnauthenticatedBounds go with AUTH, and come back with RESET, inside of one pipeline.
func TestUnauthenticatedBounds(t *testing.T) {
	eleven := resptest.Encode("ECHO", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11")
	const read, refused = "-ERR wrong number of arguments for 'echo' command\r\n", "-ERR Protocol error: unauthenticated multibulk length\r\n"
	const ok, wrong, reset = "+OK\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n", "+RESET\r\n"
	for _, tt := range []struct {
		in, want string
		status   peer.Status
	}{
		{eleven, refused, peer.Close},
		{"AUTH wrong\r\n" + eleven, wrong + refused, peer.Close},
		{"AUTH secret\r\n" + eleven, ok + read, peer.NeedInput},
		{"AUTH secret\r\nAUTH wrong\r\n" + eleven, ok + wrong + read, peer.NeedInput},
		{"AUTH secret\r\nRESET\r\n" + eleven, ok + reset + refused, peer.Close},
		{"AUTH secret\r\n" + eleven + "RESET\r\n" + eleven, ok + read + reset + refused, peer.Close},
		// As in Redis, a HELLO that fails behind its AUTH has authenticated.
		{"HELLO 2 AUTH default secret FOO\r\n" + eleven, "-ERR Syntax error in HELLO option 'FOO'\r\n" + read, peer.NeedInput},
	} {
		if got, _, status := rig.Converse(t, rig.New(rig.WithPassword("secret")).Session(), tt.in); got != tt.want || status != tt.status {
			t.Errorf("%.60q: got %q, status %d, want %q, %d", tt.in, got, status, tt.want, tt.status)
		}
	}
}

// TestInfoSections: each line of INFO is a key and a value, under its section, and the sections are those asked for.
func TestInfoSections(t *testing.T) {
	usual := []string{"Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Modules", "Errorstats", "Cluster", "Keyspace"}
	all := slices.Insert(slices.Clone(usual), 8, "Commandstats")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"", usual},
		{" default", usual},
		{" ALL", all},
		{" everything", all},
		{" nosuch default", usual},
		{" commandstats default", all},
		{" server", []string{"Server"}},
		{" Memory SERVER", []string{"Server", "Memory"}},
		{" keyspace keyspace", []string{"Keyspace"}},
		{" nosuch", nil},
	} {
		s := rig.New().Session()
		got := resptest.ParseAll(t, rig.Say(t, s, "CL.THROTTLE a 0 1 1\r\nINFO"+tt.args+"\r\n"))[1].Text
		var titles []string
		for section := range strings.SplitSeq(strings.TrimSuffix(got, "\r\n"), "\r\n\r\n") {
			lines := strings.Split(section, "\r\n")
			if title, ok := strings.CutPrefix(lines[0], "# "); ok {
				titles = append(titles, title)
			}
			for _, line := range lines[1:] {
				if key, value, ok := strings.Cut(line, ":"); !ok || key == "" || value == "" && key != "config_file" || strings.Contains(key, " ") {
					t.Errorf("INFO%s: line %q", tt.args, line)
				}
			}
		}
		if fmt.Sprint(titles) != fmt.Sprint(tt.want) {
			t.Errorf("INFO%s: sections %q, want %q", tt.args, titles, tt.want)
		}
	}
	got := rig.Say(t, rig.New().Session(), "INFO server memory\r\n")
	for _, want := range []string{"redis_version:" + catalog.RedisVersion, "cellserver_version:1.2.3", "redis_mode:standalone", "tcp_port:6380",
		"uptime_in_seconds:0", "maxmemory:0", "maxmemory_policy:noeviction"} {
		if !strings.Contains(got, want+"\r\n") {
			t.Errorf("INFO lacks %s in %q", want, got)
		}
	}
}

// TestTime: seconds and microseconds of the wall clock, not of the engine's.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rig.New().Session()
		time.Sleep(1500*time.Millisecond + 42*time.Microsecond + 999)
		if got := rig.Say(t, s, "TIME\r\n"); got != "*2\r\n$9\r\n946684801\r\n$6\r\n500042\r\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestClientText: the longest names that a client may give itself.
func TestClientText(t *testing.T) {
	longest := strings.Repeat("n", maxClientText)
	for _, tt := range []struct{ in, want string }{
		{resptest.Encode("CLIENT", "SETNAME", longest) + "CLIENT GETNAME\r\n", "+OK\r\n$1024\r\n" + longest + "\r\n"},
		{resptest.Encode("CLIENT", "SETNAME", longest+"n") + "CLIENT GETNAME\r\n", "-ERR Client names cannot be longer than 1024 bytes.\r\n$-1\r\n"},
		{resptest.Encode("CLIENT", "SETINFO", "lib-name", longest), "+OK\r\n"},
		{resptest.Encode("CLIENT", "SETINFO", "lib-ver", longest+"n"), "-ERR lib-ver cannot be longer than 1024 bytes.\r\n"},
		{resptest.Encode("HELLO", "2", "SETNAME", longest+"n"), "-ERR Client names cannot be longer than 1024 bytes.\r\n"},
	} {
		if got := rig.Say(t, rig.New().Session(), tt.in); got != tt.want {
			t.Errorf("%.60q: got %.100q, want %.100q", tt.in, got, tt.want)
		}
	}
}
