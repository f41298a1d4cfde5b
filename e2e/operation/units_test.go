package operation

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
)

// unitUsers are an operator, one without the right to CL.RESET, one without @refill, and one without rights.
const unitUsers = "user default on nopass ~* &* +@all\nuser keeper on >pw ~* &* +@all -cl.reset\nuser fast on >pw ~* &* +@all -@refill\nuser poor on >pw ~* +ping\n"

const keeperToken, fastToken, poorToken = "0123456789keeper", "0123456789fast00", "0123456789poor00"

// giving is a command that gives units back, or might.
type giving struct {
	before string // other calls, of an operator
	call   string
	right  string // "reset": to CL.RESET the key; "nothing": it gives none back, whoever sends it; "refill": to the command, in @refill; "own": to the command alone
	http   string // the same as a path and a body; "" for none
}

const (
	aFunnel        = "CL.THROTTLE k 9 1 3600 10"
	funnelOverHTTP = `"key":"k","algorithm":"funnel","max_burst":9,"count":1,"period":"1h"`
)

// givings has each command that changes a key, as SECURITY.md has them. Those of takers are in takes.
func givings() []giving {
	return []giving{
		{aFunnel, "CL.THROTTLE k 9 1 3600 -5", "reset", ""},
		{aFunnel, "RL.THROTTLE k 9 1 3600 -5", "reset", ""},
		{aFunnel, "CL.PTHROTTLE k 9 1 3600000 -5", "reset", ""},
		{aFunnel, "CL.TOKENBUCKET k 10 1 3600 -5", "reset", "refund " + `{"key":"k","algorithm":"token_bucket","capacity":10,"refill":1,"period":"1h","quantity":5}`},
		{aFunnel, "CL.BTHROTTLE k 9 1 3600 -5 1", "reset", ""},
		{aFunnel, "CL.REFUND k 9 1 3600", "reset", "refund {" + funnelOverHTTP + "}"},
		{aFunnel, "CL.REFUND k 9 1 3600 5", "reset", "refund {" + funnelOverHTTP + `,"quantity":5}`},
		{"CL.FIXEDWINDOW k 9 3600 9", "CL.FIXEDWINDOW k 9 3600 -5", "reset", "refund " + `{"key":"k","algorithm":"fixed_window","max_count":9,"period":"1h","quantity":5}`},
		{"CL.SLIDINGWINDOW k 9 3600 9", "CL.SLIDINGWINDOW k 9 3600 -5", "reset", "refund " + `{"key":"k","algorithm":"sliding_window","max_count":9,"period":"1h","quantity":5}`},
		{"CL.QUOTA k 9 YEAR 9", "CL.QUOTA k 9 YEAR -5", "reset", "refund " + `{"key":"k","algorithm":"quota","max_count":9,"every":"year","quantity":5}`},
		{"CL.CHECK lim k 2", "CL.CHECK lim k -1", "reset", "refund " + `{"limit":"lim","key":"k"}`},
		{"CL.BUCKET ADD k 9 1", "CL.BUCKET TAKE k 9 -5", "reset", ""},
		{"CL.BUCKET ADD k 9 1", "CL.BUCKET ADD k 9 5", "reset", ""},
		{"CL.BUCKET ADD k 9 1", "CL.BUCKET RESET k 9", "reset", ""},
		{aFunnel, "CL.RESET k", "reset", ""},
		{aFunnel, "DEL k", "reset", `reset {"key":"k"}`},
		{"CL.CHECK lim k 2", "DEL lim:k", "reset", `reset {"limit":"lim","key":"k"}`},
		{aFunnel, "UNLINK k", "reset", ""},
		{aFunnel, "EXPIRE k -1", "reset", ""},
		{aFunnel, "PEXPIRE k -1", "reset", ""},
		{aFunnel, "EXPIREAT k 1", "reset", ""},
		{aFunnel, "PEXPIREAT k 1", "reset", ""},
		{"CL.BUCKET ADD k 9 1", "PERSIST k", "nothing", ""},
		{aFunnel, "RESTORE k 0 PAYLOAD REPLACE", "reset", ""},
		{aFunnel, "SET k text", "reset", ""},
		{aFunnel, "SETEX k 60 text", "reset", ""},
		{aFunnel, "PSETEX k 60000 text", "reset", ""},
		{aFunnel, "MSET k text other text", "reset", ""},
		{aFunnel, "SETNX k text", "reset", ""},
		{aFunnel, "SET k text IFNE 1", "reset", ""},
		{aFunnel, "GETSET k text", "reset", ""},
		{aFunnel, "MSETEX 1 k text", "reset", ""},
		{aFunnel, "MSETEX 1 k text XX EX 60", "reset", ""},
		{aFunnel, "MSETEX 1 k text NX", "nothing", ""},
		{aFunnel, "MSETNX other text k text", "nothing", ""},
		{aFunnel, "GETDEL k", "reset", ""},
		{aFunnel, "DELEX k", "reset", ""},
		{aFunnel, "DELEX k IFNE 1", "reset", ""},
		{aFunnel, "DELIFEQ k 1", "reset", ""},
		{aFunnel, "GETEX k PXAT 1", "nothing", ""},
		{aFunnel, "RENAME k other", "reset", ""},
		{aFunnel + "\r\nSET other text", "RENAME other k", "reset", ""},
		{aFunnel, "RENAMENX k other", "reset", ""},
		{aFunnel, "INCR k", "nothing", ""},
		{aFunnel, "DECR k", "nothing", ""},
		{aFunnel, "INCRBY k -100", "nothing", ""},
		{aFunnel, "DECRBY k 1000000000", "nothing", ""},
		{aFunnel, "INCRBYFLOAT k -1", "nothing", ""},
		{aFunnel, "INCREX k BYINT -5 LBOUND 0 SATURATE EXAT 1", "nothing", ""},
		{aFunnel, "CL.MTHROTTLE 1 k 9 1 3600 -5", "nothing", ""},
		{"CL.CHECK lim k 2", "CL.MCHECK 1 lim k QUANTITY -1", "nothing", ""},
		{"CL.MRESERVE 1 lim k 2 TTL 100s", "CL.MRESERVE 1 lim k -1 TTL 100s", "nothing", ""},
		{"CL.MRESERVE 1 lim k 2 TTL 100s ID tok", "CL.MCOMMIT tok 1 lim k 1", "own", `commit {"id":"tok","checks":[{"limit":"lim","key":"k","units":1}]}`},
		{"CL.MRESERVE 1 lim k 2 TTL 100s ID tok", "CL.MCOMMIT tok 1 lim k -1", "nothing", `commit {"id":"tok","checks":[{"limit":"lim","key":"k","units":-1}]}`},
		{"CL.MRESERVE 1 lim k 2 TTL 100s ID tok", "CL.MEXTEND tok 1 1 lim k", "own", ""},
		{aFunnel, "CL.DEBIT k 9 1 3600 -5", "nothing", ""},
		{aFunnel, "CL.PEEK k 9 1 3600 -5", "nothing", ""},
		{"CL.RESERVE k 9 1 3600 5 100000", "CL.COMMIT k ID 1", "own", ""},
		{"CL.CONCURRENCY ACQUIRE k 1 100000 tok", "CL.CONCURRENCY RELEASE k tok", "own", `release {"key":"k","token":"tok"}`},
		{"CL.CONCURRENCY ACQUIRE k 1 100000 tok", "CL.CONCURRENCY RENEW k 1 tok", "own", ""},
		{"CL.CHECK lim k 2", "CL.LIMIT OVERRIDE lim k UNLIMITED", "own", ""},
		{"CL.CHECK lim k 2", "CL.LIMIT SET lim 99 1 3600", "own", ""},
		{"CL.CHECK lim k 2", "CL.LIMIT DEL lim", "own", ""},
		{aFunnel, "FLUSHDB", "refill", ""},
		{aFunnel, "FLUSHALL", "refill", ""},
	}
}

// takes are commands that change keys and give nothing back, or not by themselves.
const takes = "cl.reserve cl.concurrency|acquire cl.limit|reload"

// TestEveryChangeIsListed: a new command that changes something has its place in givings.
func TestEveryChangeIsListed(t *testing.T) {
	t.Parallel()
	table, listed := catalog.New(), strings.Fields(takes)
	for _, g := range givings() {
		var words [][]byte
		for _, word := range strings.Fields(g.call) {
			words = append(words, []byte(word))
		}
		listed = append(listed, table.Called(words).FullName())
	}
	table.Each(func(c *catalog.Command) {
		changes := c.Flags&catalog.FlagWrite != 0 && !c.Keys.None() || slices.Contains(c.AllCategories(), "refill")
		if changes && c.Refusal == "" && len(c.Subs) == 0 && c.Flags&catalog.FlagScript == 0 && !slices.Contains(listed, c.FullName()) {
			t.Errorf("%s is not listed: which right does it need to give units back?", c.FullName())
		}
	})
}

var idOf = regexp.MustCompile(`\$\d+\r?\n?\s*([0-9a-zA-Z-]{8,})`)

// unitsServer is a server with a limit, and an operator's connection.
type unitsServer struct {
	*harness.Process
	operator net.Conn
}

func (s *unitsServer) dump(t *testing.T) string {
	t.Helper()
	return harness.Reply(t, s.operator, "DUMP k") + harness.Reply(t, s.operator, "DUMP lim:k")
}

// prepare makes the keys anew, and returns the call.
func (s *unitsServer) prepare(t *testing.T, g *giving) string {
	t.Helper()
	call, reply := g.call, ""
	harness.Reply(t, s.operator, "FLUSHALL")
	harness.Reply(t, s.operator, "CL.LIMIT SET lim 1 1 3600")
	harness.Reply(t, s.operator, "CL.LIMIT OVERRIDE lim k DEL")
	for line := range strings.SplitSeq(g.before, "\r\n") {
		if reply = harness.Reply(t, s.operator, line); strings.HasPrefix(reply, "-") {
			t.Fatalf("%s: %s", line, reply)
		}
	}
	if id := idOf.FindStringSubmatch(reply); id != nil {
		call = strings.Replace(call, " ID ", " "+id[1]+" ", 1)
	}
	if strings.Contains(call, "PAYLOAD") { // of a text
		nc := s.Dial(t)
		harness.Exchange(t, nc, "SET source text\r\n", "+OK\r\n")
		dumped := harness.SayTo(t, nc, "DUMP source\r\nPING\r\n", "+PONG\r\n")
		_, payload, _ := strings.Cut(strings.TrimSuffix(dumped, "\r\n+PONG\r\n"), "\r\n")
		call = strings.Replace(call, "PAYLOAD", resp.Quote([]byte(payload)), 1)
	}
	return call
}

// ways are those to send a call by a user.
func (s *unitsServer) ways(user string) map[string]func(t *testing.T, call string) string {
	say := func(t *testing.T, lines string) string {
		t.Helper()
		nc := s.Dial(t)
		defer func() { _ = nc.Close() }()
		harness.Exchange(t, nc, "AUTH "+user+" pw\r\n", "+OK\r\n")
		return harness.SayTo(t, nc, lines+"\r\nECHO done\r\n", "$4\r\ndone\r\n")
	}
	return map[string]func(t *testing.T, call string) string{
		"RESP": say,
		"EXEC": func(t *testing.T, call string) string { return say(t, "MULTI\r\n"+call+"\r\nEXEC") },
		"script": func(t *testing.T, call string) string {
			words, _ := resp.SplitInline([]byte(call), nil)
			line := "EVAL \"return redis.call(unpack(ARGV))\" 3 k lim:k other"
			for _, word := range words {
				line += " " + resp.Quote(word)
			}
			return say(t, line)
		},
	}
}

var denials = regexp.MustCompile(`NOPERM|can't run this command|can't access at least one|No permissions`)

// try sends a call in a way, and expects that it is denied and changes nothing, or is not denied.
func (s *unitsServer) try(t *testing.T, g *giving, user, way string, send func(t *testing.T, call string) string, denied bool) {
	t.Helper()
	call := s.prepare(t, g)
	before := s.dump(t)
	got := send(t, call)
	switch {
	case denied != denials.MatchString(got):
		t.Errorf("%s of %s by %s: denied must be %t: %q", way, call, user, denied, got)
	case (denied || g.right == "nothing") && s.dump(t) != before:
		t.Errorf("%s of %s by %s has changed the key: %q", way, call, user, got)
	}
}

// TestWhoGivesUnitsBack: only a user who may CL.RESET a key can give its units back, whatever the command.
func TestWhoGivesUnitsBack(t *testing.T) {
	t.Parallel()
	tokens := harness.WriteFile(t, keeperToken+" keeper\n"+fastToken+" fast\n"+poorToken+" poor\n")
	s := &unitsServer{Process: harness.StartServer(t, "--aclfile", harness.WriteFile(t, unitUsers), "--http-addr", "127.0.0.1:0", "--http-tokens-file", tokens)}
	s.operator = s.Dial(t)
	client := newHTTPClient(t, nil)
	for user, token := range map[string]string{"keeper": keeperToken, "fast": fastToken} {
		for _, g := range givings() {
			denied := g.right == "reset" || g.right == "refill" && user == "fast"
			for way, send := range s.ways(user) {
				if g.right != "own" && g.right != "refill" || way == "RESP" { // others than RESP may refuse those for what they are
					s.try(t, &g, user, way, send, denied)
				}
			}
			if path, body, ok := strings.Cut(g.http, " "); ok {
				s.try(t, &g, user, "HTTP", func(t *testing.T, _ string) string {
					_, text := call(t, client, http.MethodPost, "http://"+s.HTTP+"/v1/"+path, body, token)
					return text
				}, denied)
			}
		}
	}
	for _, g := range givings() { // an operator may do all of them
		if got := harness.Reply(t, s.operator, s.prepare(t, &g)); strings.Contains(got, "NOPERM") {
			t.Errorf("%s by an operator: %s", g.call, got)
		}
	}
}

// call returns the status and the body of a request.
func call(t *testing.T, client *http.Client, method, url, body, token string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("X-Cellserver-Token", token)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	b, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(b)
}

// TestStrangersLearnNothing: every path tells who asks first, and names of limits to nobody without a right.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	tokens := harness.WriteFile(t, poorToken+" poor\n"+keeperToken+" checker\n")
	users := harness.WriteFile(t, "user default on >pw ~* &* +@all\nuser poor on nopass ~nothing +ping\nuser checker on nopass ~* +cl.check +del\n")
	limits := harness.WriteFile(t, strings.Replace(oneOfTwo, "visitor", "hushhush", 1))
	p := harness.StartServer(t, "--aclfile", users, "--http-addr", "127.0.0.1:0", "--http-tokens-file", tokens, "--limits-file", limits)
	client := newHTTPClient(t, nil)
	var guesses sync.WaitGroup // each is answered late
	defer guesses.Wait()
	const named, own = `{"limit":"LIMIT","key":"k"}`, `{"key":"k","algorithm":"funnel","max_burst":9,"count":1,"period":"1h"}`
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/v1/check/LIMIT?key=k", ""}, {"GET", "/v1/check/LIMIT?by=ip", ""}, {"GET", "/v1/check/LIMIT", ""}, {"POST", "/v1/check", named}, {"POST", "/v1/check", own},
		{"POST", "/v1/check", `{"checks":[` + named + `]}`}, {"POST", "/v1/check", `{"checks":[` + named + `],"each":true}`}, {"POST", "/v1/check", "no JSON"},
		{"POST", "/v1/peek", named}, {"POST", "/v1/debit", named}, {"POST", "/v1/refund", named}, {"POST", "/v1/refund", own}, {"POST", "/v1/reset", named},
		{"POST", "/v1/reset", `{"key":"k"}`}, {"POST", "/v1/reserve", `{"key":"k","max_burst":9,"count":1,"period":"1h","ttl_ms":1000}`},
		{"POST", "/v1/commit", `{"key":"k","id":"x","quantity":1}`}, {"POST", "/v1/acquire", `{"key":"k","max":1,"lease_ms":1000}`}, {"POST", "/v1/release", `{"key":"k","token":"x"}`},
		{"POST", "/v1/reserve", `{"checks":[{"limit":"LIMIT","key":"k","units":1}],"ttl_ms":1000}`}, {"POST", "/v1/commit", `{"checks":[{"limit":"LIMIT","key":"k","units":1}],"id":"x"}`},
		{"POST", "/v1/extend", `{"checks":[{"limit":"LIMIT","key":"k"}],"id":"x","ttl_ms":1}`}, {"POST", "/v1/reserve", `{"checks":[{"limit":"LIMIT","key":"k","units":0}],"ttl_ms":0}`},
		{"GET", "/v1/limits", ""}, {"GET", "/v1/limits/LIMIT", ""}, {"GET", "/v1/limits/LIMIT/explain?key=k", ""},
		{"GET", "/v1/openapi.json", ""}, {"GET", "/healthz", ""}, {"GET", "/", ""}, {"DELETE", "/v1/reset", ""}, {"PUT", "/nosuch", ""},
	} {
		var answers []string
		for _, limit := range []string{"hushhush", "other"} { // one that is there, and none
			path, body := strings.ReplaceAll(tt.path, "LIMIT", limit), strings.ReplaceAll(tt.body, "LIMIT", limit)
			send := func(token string) (status int, text string) {
				status, text = call(t, client, tt.method, "http://"+p.HTTP+path, body, token)
				if token != poorToken && status != http.StatusUnauthorized {
					t.Errorf("%s %s %s by the token %q: %d %s", tt.method, path, body, token, status, text)
				}
				if limit == "other" && strings.Contains(text, "hushhush") {
					t.Errorf("%s %s by the token %q tells the name of another limit: %s", tt.method, path, token, text)
				}
				return status, text
			}
			send("")
			guesses.Go(func() { send("0123456789wrong0") })
			if _, text := send(poorToken); path+body != tt.path+tt.body {
				text = strings.ReplaceAll(text, limit, "LIMIT")
				answers = append(answers, text)
			}
		}
		if answers != nil && answers[0] != answers[1] {
			t.Errorf("%s %s tells a user without rights whether there is the limit: %q", tt.method, tt.path, answers)
		}
	}
	const server = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if got := sendRaw(t, p.HTTP, server); !strings.HasPrefix(got, "HTTP/1.1 401 ") {
		t.Errorf("OPTIONS of the server: %q", got)
	}
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/v1/check/other?key=k", ""}, {"POST", "/v1/check", `{"limit":"other","key":"k"}`}, {"POST", "/v1/reset", `{"limit":"other","key":"k"}`},
	} {
		if status, text := call(t, client, tt.method, "http://"+p.HTTP+tt.path, tt.body, keeperToken); status != http.StatusNotFound || strings.Contains(text, "hushhush") {
			t.Errorf("%s %s by a user of some commands: %d %s", tt.method, tt.path, status, text)
		}
	}
}
