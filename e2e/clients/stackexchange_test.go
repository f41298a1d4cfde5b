package clients

import (
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// .NET cannot be had here, so what StackExchange.Redis sends is replayed, as versions 2.13 and 3.1 write it
// by their source.

// connectionID is what a multiplexer has ECHO return: the bytes of a GUID, which may be a line's end.
const connectionID = "\x8f\r\n\x00\xff$5\r\n\xfa\x01*\x80 \"\n"

// setup identifies a connection, and discovery learns what the server is; the tracer ends both.
const (
	setup     = "CLIENT SETNAME web-1(SE.Redis-v3.1.31.1) / CLIENT SETINFO lib-name SE.Redis / CLIENT SETINFO lib-ver 3.1.31.1 / CLIENT ID / "
	discovery = "CONFIG GET timeout / CONFIG GET NAME-read-only / CONFIG GET databases / SENTINEL MASTERS / INFO replication / " +
		"INFO server / CLUSTER NODES / GET __Booksleeve_TieBreak / "
	tracer    = "ECHO {id} / "
	subscribe = "SUBSCRIBE __Booksleeve_MasterChanged / PING / SUBSCRIBE __Booksleeve_MasterChanged / " +
		"UNSUBSCRIBE {id} / UNSUBSCRIBE __Booksleeve_MasterChanged / PING / "
	keepAlive = "PING / INFO replication / SELECT 3 / CONFIG GET replica-read-only / "
)

// handshakes are the streams of its connections by name.
func handshakes() map[string]string {
	before3 := strings.ReplaceAll(discovery, "NAME", "slave")
	since3 := strings.ReplaceAll(discovery, "NAME", "replica")
	return map[string]string{
		"2.13, interactive":          "AUTH secret / " + setup + before3 + tracer + keepAlive,
		"2.13, subscription":         "AUTH secret / " + setup + tracer + subscribe,
		"2.13 by RESP3":              "HELLO 3 AUTH default secret SETNAME web-1 / AUTH secret / " + setup + before3 + tracer + keepAlive,
		"3.1 by RESP2, interactive":  "AUTH default secret / HELLO 2 / " + setup + since3 + tracer + keepAlive,
		"3.1 by RESP2, subscription": "AUTH default secret / " + setup + tracer + subscribe,
		"3.1":                        "AUTH secret / HELLO 3 / " + setup + since3 + tracer + keepAlive + subscribe,
		"3.1 without AUTH":           "HELLO 3 AUTH default secret / " + setup + since3 + tracer,
	}
}

// commands encodes a stream's commands.
func commands(stream string) (encoded []string) {
	for command := range strings.SplitSeq(strings.TrimSuffix(stream, " / "), " / ") {
		words := strings.Fields(command)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "{id}", connectionID)
		}
		encoded = append(encoded, resptest.Encode(words...))
	}
	return encoded
}

// replay sends commands in pieces of some bytes, and returns a reply for each.
func replay(t *testing.T, nc net.Conn, pieceBytes int, encoded ...string) (replies []resptest.Reply) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		for piece := range slices.Chunk([]byte(strings.Join(encoded, "")), pieceBytes) {
			if _, err := nc.Write(piece); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	buf, pending := make([]byte, 64<<10), ""
	for len(replies) < len(encoded) {
		r, rest, err := resptest.Parse(pending)
		if err == nil {
			replies, pending = append(replies, r), rest
			continue
		}
		n, readErr := nc.Read(buf)
		if readErr != nil {
			t.Fatalf("%d replies to %d commands, then %q: %v, %v", len(replies), len(encoded), pending, err, readErr)
		}
		pending += string(buf[:n])
	}
	if err := <-sent; err != nil || pending != "" {
		t.Fatalf("%v, and more than a reply each: %q", err, pending)
	}
	return replies
}

// read is the lines of INFO that the library reads, without what differs between two servers.
var read = regexp.MustCompile(`(?m)^(role|master_host|master_port|redis_mode|redis_version|run_id):`)

// seen returns what the library sees of a reply.
func seen(command string, r resptest.Reply) string {
	switch {
	case strings.Contains(command, "\nINFO\r\n"):
		return strings.Join(read.FindAllString(r.Text, -1), " ") + regexp.MustCompile(`(role|redis_mode):\w+`).FindString(r.Text)
	case strings.Contains(command, "\nHELLO\r\n"):
		return string(r.Kind) + r.Field("server").Text + r.Field("proto").Text + r.Field("mode").Text + r.Field("role").Text
	case strings.Contains(command, "\r\nID\r\n"):
		return string(r.Kind)
	case strings.Contains(command, "\r\nSETINFO\r\n"):
		return "" // of Redis 7.2, and so unknown to 7.0
	}
	text := string(r.Kind) + r.Text
	for _, e := range r.Elements {
		text += " " + seen("", e)
	}
	return text
}

// TestStackExchangeConnects: each reply to its handshakes is that of a Redis without Sentinel, however it
// is cut into pieces, and no alert counts those that are errors.
func TestStackExchangeConnects(t *testing.T) {
	redis := harness.StartRedis(t, "--requirepass", "secret")
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--requirepass", "secret")
		probes := 0
		for _, name := range slices.Sorted(maps.Keys(handshakes())) {
			stream := commands(handshakes()[name])
			want := replay(t, redis.Dial(t), 1<<20, stream...)
			for _, pieceBytes := range []int{1 << 20, 1, 7} {
				probes += strings.Count(strings.Join(stream, ""), "\r\nMASTERS\r\n")
				for i, got := range replay(t, p.Dial(t), pieceBytes, stream...) {
					if seen(stream[i], got) != seen(stream[i], want[i]) {
						t.Errorf("%s in pieces of %d: %q got %+v, Redis replies %+v", name, pieceBytes, stream[i], got, want[i])
					}
					if strings.Contains(stream[i], "SETINFO") && got.Kind != '+' {
						t.Errorf("%s: %q got %+v", name, stream[i], got)
					}
				}
			}
		}
		for code, want := range map[string]int{"ERR": 0, "NOAUTH": 0, "other": 2 * probes} {
			if got := p.Metric(t, `cellserver_errors_total{code="`+code+`"}`); got != float64(want) {
				t.Errorf("%v errors count as %s, want %d", got, code, want)
			}
		}
		if log := p.Log.String(); strings.Contains(log, "does not have") {
			t.Errorf("the log names what the library asks: %s", log)
		}
	})
}

// TestStackExchangesUser: a user with the rules of docs/CLIENTS.md connects without an error but the
// expected ones, and may call its limits only.
func TestStackExchangesUser(t *testing.T) {
	page, err := os.ReadFile("../../docs/CLIENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	user := regexp.MustCompile(`(?m)^ +(user web on >PASSWORD .*)$`).FindSubmatch(page)
	if user == nil {
		t.Fatal("docs/CLIENTS.md has no rules for a user")
	}
	p := harness.StartServer(t, "--aclfile", harness.WriteFile(t, "user default off\n"+string(user[1])+"\n"))
	call := " / CL.THROTTLE laoqian:reply 15 30 60 / CL.THROTTLE other 15 30 60 / DEL laoqian:reply"
	for name, stream := range handshakes() {
		stream = strings.NewReplacer("AUTH secret", "AUTH web PASSWORD", "default secret", "web PASSWORD").Replace(stream)
		encoded := commands(stream + "AUTH web PASSWORD" + call)
		replies := replay(t, p.Dial(t), 1<<20, encoded...)
		n := len(replies) - 3
		for i, r := range replies[:n] {
			expected := strings.Contains(encoded[i], "MASTERS") || strings.Contains(encoded[i], "NODES")
			if (r.Kind == '-') != expected || strings.HasPrefix(r.Text, "NOPERM") {
				t.Errorf("%s: %q got %+v", name, encoded[i], r)
			}
		}
		if len(replies[n].Elements) != 5 || replies[n].Elements[1].Number != 16 {
			t.Errorf("%s: the call got %+v", name, replies[n])
		}
		for _, r := range replies[n+1:] {
			if !strings.HasPrefix(r.Text, "NOPERM") {
				t.Errorf("%s: got %+v, want NOPERM", name, r)
			}
		}
	}
}

// TestStackExchangeReconfigures: what a client publishes about a new leader reaches the others, by both
// protocols.
func TestStackExchangeReconfigures(t *testing.T) {
	p := harness.StartServer(t)
	const subscribed = "$9\r\nsubscribe\r\n$26\r\n__Booksleeve_MasterChanged\r\n:1\r\n"
	message := strings.TrimPrefix(resptest.Encode("message", "__Booksleeve_MasterChanged", "*"), "*")
	old, modern := p.Dial(t), p.Dial(t)
	harness.Exchange(t, old, resptest.Encode("SUBSCRIBE", "__Booksleeve_MasterChanged"), "*3\r\n"+subscribed)
	replay(t, modern, 1, resptest.Encode("HELLO", "3"))
	harness.Exchange(t, modern, resptest.Encode("SUBSCRIBE", "__Booksleeve_MasterChanged"), ">3\r\n"+subscribed)
	harness.Exchange(t, p.Dial(t), resptest.Encode("PUBLISH", "__Booksleeve_MasterChanged", "*"), ":2\r\n")
	harness.Exchange(t, old, "", "*"+message)
	harness.Exchange(t, modern, "", ">"+message)
}

// TestStackExchangeLocks replays LockTake, LockExtend and LockRelease: by transactions, and on a server
// that says 8.4 or more, by SET with IFEQ and DELEX.
func TestStackExchangeLocks(t *testing.T) {
	const take, lock, wrong, longer = "SET lock TOKEN EX 30 NX", "+OK", "_", "more than 30 s"
	type step struct{ send, want string }
	transactions := []step{
		{take, lock}, {"SET lock other EX 30 NX", wrong}, {"GET lock", "$TOKEN"},
		{"WATCH lock", "+OK"}, {"GET lock", "$TOKEN"}, {"MULTI", "+OK"}, {"EXPIRE lock 3600", "+QUEUED"}, {"EXEC", "*1 :1"},
		{"PTTL lock", longer},
		{"WATCH lock", "+OK"}, {"GET lock", "$TOKEN"}, {"UNWATCH", "+OK"}, // its own token is another
		{"WATCH lock", "+OK"}, {"GET lock", "$TOKEN"}, {"MULTI", "+OK"}, {"DEL lock", "+QUEUED"}, {"EXEC", "*1 :1"},
		{"GET lock", wrong}, {take, lock},
	}
	conditions := []step{
		{take, lock}, {"SET lock other EX 30 NX", wrong},
		{"SET lock TOKEN EX 3600 IFEQ TOKEN", "+OK"}, {"PTTL lock", longer}, {"SET lock other EX 60 IFEQ other", wrong},
		{"DELEX lock IFEQ other", ":0"}, {"GET lock", "$TOKEN"}, {"DELEX lock IFEQ TOKEN", ":1"}, {"DELEX lock IFEQ TOKEN", ":0"},
		{"SET lock TOKEN EX 3600 IFEQ TOKEN", wrong}, {"GET lock", wrong}, {take, lock},
	}
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		for name, steps := range map[string][]step{"transactions": transactions, "conditions": conditions} {
			nc := p.Dial(t)
			hello := replay(t, nc, 1, resptest.Encode("HELLO", "3"))[0]
			if name == "conditions" && !hasConditions(hello.Field("version").Text) {
				continue
			}
			replay(t, nc, 1, resptest.Encode("DEL", "lock"))
			for _, s := range steps {
				got := replay(t, nc, 1, commands(strings.ReplaceAll(s.send, "TOKEN", "{id}"))...)[0]
				text := strings.ReplaceAll(seen("", got), connectionID, "TOKEN")
				if text != s.want && (s.want != longer || got.Number <= 30_000) {
					t.Errorf("%s: %s got %q, want %q", name, s.send, text, s.want)
				}
			}
		}
		stolen, thief := p.Dial(t), p.Dial(t)
		replay(t, stolen, 1, commands("SET lock a EX 30 / WATCH lock / GET lock")...)
		replay(t, thief, 1<<20, commands("SET lock b EX 30")...)
		if got := replay(t, stolen, 1<<20, commands("MULTI / DEL lock / EXEC / GET lock")...); got[2].Kind != '_' || got[3].Text != "b" {
			t.Errorf("a lock that another client has taken: got %+v", got)
		}
	})
}

// hasConditions reports whether the library uses conditions on a server of a version: from 8.3.224, 8.4's
// candidate.
func hasConditions(version string) bool {
	parts := strings.Split(version, ".")
	return len(parts) == 3 && len(parts[0]) == 1 && (parts[0] > "8" || parts[0] == "8" && parts[1] >= "4")
}
