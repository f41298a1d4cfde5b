package session_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/resp"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// FuzzArguments: any five arguments of CL.THROTTLE get one valid reply in one piece.
func FuzzArguments(f *testing.F) {
	for _, seed := range [][5]string{
		{"user123", "15", "30", "60", "1"},
		{"", "+0", "00030", "60", "-1"},
		{"\x00\xff", "4", "1", "10", "9223372036854775807"},
		{"k", "-1", "0", "-60", "-9223372036854775808"},
		{"k", "9223372036854775807", "1", "1", "0"},
		{"k", "0", "1", "4611686018", "1"},
		{"k", "4611686018427387903", "1000000000", "1", "4611686018427387904"},
		{"k", "1\r\n+OK\r\n", "\x1b", "\u009b", "漢"},
		{strings.Repeat("k", commandstest.MaxKeyBytes+1), "", "-", "+", "1.0"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, key, maxBurst, count, period, quantity string) {
		r := commandstest.New()
		s := r.Session()
		call := resptest.Encode("CL.THROTTLE", key, maxBurst, count, period, quantity)
		all := resptest.ParseAll(t, commandstest.Say(t, s, call+"PING\r\n"+call+"PING\r\n"))
		if len(all) != 4 || all[1].Text != "PONG" || all[3].Text != "PONG" || all[0].Kind != all[2].Kind {
			t.Fatalf("got %+v", all)
		}
		if all[0].Kind == '-' {
			const most = len("Cell error: Store error: ") + 200
			if st := r.Stats(); len(all[0].Text) > most || st.Keys != 0 || st.Allowed+st.Limited != 0 || all[0].Text != all[2].Text {
				t.Fatalf("got %q, %q, and the store holds %+v", all[0].Text, all[2].Text, st)
			}
			return
		}
		asked, _ := strconv.ParseInt(quantity, 10, 64)
		checkFive(t, all[0], asked)
		checkFive(t, all[2], asked)
		if st := r.Stats(); st.Allowed+st.Limited != 2 || st.Keys > 1 || st.Keys > 0 && asked <= 0 {
			t.Fatalf("the store holds %+v", st)
		}
	})
}

// FuzzBatchedArguments: any arguments of a batched command get an error or five integers, twice.
func FuzzBatchedArguments(f *testing.F) {
	names := catalog.New().Batched()
	for i := range names {
		f.Add(uint8(i), "15", "30", "60", "1", "")
		f.Add(uint8(i), "5", "60", "-1", "approx", "COUNTDENIED")
		f.Add(uint8(i), "9223372036854775807", "9223372036854775807", "-9223372036854775808", "", "x")
		f.Add(uint8(i), "4096", "4611686018", "9223372036854775807", "countdenied", "")
		f.Add(uint8(i), "1", "-60", "0", "\r\n+OK", "-")
		f.Add(uint8(i), "4", "", "", "", "")
	}
	f.Fuzz(func(t *testing.T, i uint8, a, b, c, d, e string) {
		args := append(strings.Split(names[int(i)%len(names)], "|"), "k", a, b, c, d, e)
		for len(args) > 0 && args[len(args)-1] == "" {
			args = args[:len(args)-1]
		}
		call := resptest.Encode(args...)
		for _, r := range resptest.ParseAll(t, commandstest.Say(t, commandstest.New().Session(), "CL.LIMIT SET k 4 5 60\r\n"+call+call+"CL.BUCKET RESET k 5\r\n"+call+"PING\r\n")) {
			switch {
			case r.Kind == '-' && len(r.Text) < 300, r.Kind == ':' && r.Number == 5, r.Kind == '+' && (r.Text == "PONG" || r.Text == "OK"):
				continue
			case r.Kind != '*' || len(r.Elements) != 5:
				t.Fatalf("%q: got %+v", args, r)
			}
			limited, limit, remaining, retryAfter := r.Elements[0].Number, r.Elements[1].Number, r.Elements[2].Number, r.Elements[3].Number
			if limited != 0 && limited != 1 || limit < 1 || remaining < 0 || remaining > max(limit, 5) || retryAfter < -1 || limited == 0 && retryAfter != -1 {
				t.Fatalf("%q: got %+v", args, r)
			}
		}
	})
}

// checkFive checks the invariants of a reply to a call for a quantity.
func checkFive(t *testing.T, r resptest.Reply, asked int64) {
	t.Helper()
	if r.Kind != '*' || len(r.Elements) != 5 {
		t.Fatalf("got %+v", r)
	}
	var n [5]int64
	for i, e := range r.Elements {
		if e.Kind != ':' {
			t.Fatalf("number %d of %+v", i, r)
		}
		n[i] = e.Number
	}
	limited, limit, remaining, retryAfter, resetAfter := n[0], n[1], n[2], n[3], n[4]
	switch {
	case limited != 0 && limited != 1, limit < 1, remaining < 0 || remaining > limit, resetAfter < 0,
		limited == 0 && retryAfter != -1,
		limited == 1 && asked <= limit && retryAfter < 0,
		limited == 1 && asked > limit && retryAfter != -1,
		limited == 0 && asked > limit,
		limited == 1 && asked <= 0,
		limited == 1 && asked <= remaining,
		retryAfter > resetAfter:
		t.Fatalf("a call for %d: %v", asked, n)
	}
}

// sessionSeeds are pipelines that reach every command.
func sessionSeeds() []string {
	seeds := []string{
		"MULTI\r\nCL.THROTTLE a 4 1 10\r\nDBSIZE\r\nEXEC\r\nWATCH a b\r\nDEL a\r\nMULTI\r\nPING\r\nEXEC\r\nMULTI\r\nNOSUCH\r\nEXEC\r\n",
		"MULTI\r\nSELECT 3\r\nCL.THROTTLE a 4 1 10\r\nEVAL \"return redis.call('ttl', KEYS[1])\" 1 a\r\nFLUSHALL\r\nEXEC\r\nDISCARD\r\nUNWATCH\r\n",
		resptest.Encode("EVAL", native, "1", "k", "4", "1", "10") + resptest.Encode("EVALSHA", commandstest.SHAOf(native), "1", "k", "4", "1", "10") + "SCRIPT FLUSH\r\n",
		resptest.Encode("EVAL", "return {1, 'x', {ok='y'}, redis.pcall('cl.throttle', KEYS[1], ARGV[1], 1, 10), false, 3.5}", "1", "k", "x"),
		resptest.Encode("EVAL_RO", "return redis.call('exists', KEYS[1])", "1", "k") + resptest.Encode("EVAL", "return redis.call('select', 1)", "0"),
		"HELLO 3\r\nEVAL \"return {double=1.5}\" 0\r\nEVAL \"redis.setresp(3) return {map={a=true}}\" 0\r\nHELLO 2 SETNAME x\r\nRESET\r\n",
		"CLIENT REPLY SKIP\r\nDBSIZE\r\nCLIENT REPLY OFF\r\nCL.THROTTLE a 1 1 1\r\nCLIENT REPLY ON\r\nPING\r\n",
		"CLIENT LIST TYPE normal\r\nCLIENT LIST ID 1 2\r\nCLIENT KILL ID 7 SKIPME no\r\nCLIENT KILL 1.2.3.4:5\r\nCLIENT TRACKING ON OPTIN\r\nCLIENT CACHING YES\r\n",
		"SCAN 0 MATCH * COUNT 5 TYPE string\r\nKEYS *\r\nEXPIRE a -1 GT\r\nPEXPIREAT a 1 NX\r\nMEMORY USAGE a SAMPLES 5\r\nINFO all\r\n",
		"CONFIG GET * save\r\nCONFIG SET maxclients 5\r\nACL LOG 5\r\nACL DRYRUN default get a\r\nACL GETUSER default\r\nCOMMAND GETKEYS eval x 1 a\r\nCOMMAND DOCS get\r\n",
		"DEBUG PROTOCOL string\r\nSHUTDOWN ABORT\r\nCL.THROTTLE k 1 1 1\r\nQUIT\r\n", "POST / HTTP/1.1\r\n", "*1\r\n$-9\r\n",
	}
	calls := strings.Join(batchedCalls(), "\r\n") + "\r\n"
	seeds = append(seeds, calls+"MULTI\r\n"+calls+"EXEC\r\n")
	catalog.New().Each(func(r *catalog.Command) {
		if r.Subs == nil {
			seeds = append(seeds, commandstest.CallOf(r, max(r.Arity, -r.Arity, 1))+commandstest.CallOf(r, max(r.Arity, -r.Arity, 1)+1))
		}
	})
	return seeds
}

// FuzzSession: any bytes get well-formed replies however the input is cut, disturb no other client, and leave
// nothing.
func FuzzSession(f *testing.F) {
	for _, seed := range sessionSeeds() {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, in string, cut int) {
		if strings.Contains(strings.ToLower(in), "auth") {
			t.Skip() // wrong passwords wait
		}
		r := commandstest.New(commandstest.WithTimeLimit(5*time.Millisecond), func(c *commands.Config) {
			c.MayDebug = func(peer.Peer) bool { return false } // DEBUG SLEEP waits
			c.Limits = resp.Limits{MaxArgs: 1000, MaxCommandBytes: 1 << 16}
		})
		other, s := r.Session(), r.Session()
		commandstest.Say(t, other, "CL.THROTTLE other 9 1 10\r\nWATCH x\r\nMULTI\r\nPING\r\n")
		at := min(max(cut, 0), len(in))
		replies, left, status := commandstest.Converse(t, s, in[:at])
		if status == peer.NeedInput {
			var more string
			more, left, status = commandstest.Converse(t, s, left+in[at:])
			replies += more
		}
		if strings.Contains(strings.ToLower(in), "eval") {
			replies = withoutControls(replies)
		}
		resptest.ParseAll(t, replies)
		if status == peer.NeedInput && len(left) > 2<<16 {
			t.Fatalf("%d bytes are not executed", len(left))
		}
		s.Close()
		if r.Engine.Clients.Len() != 1 {
			t.Fatal("a session has left something")
		}
		if got := resptest.ParseAll(t, commandstest.Say(t, other, "EXEC\r\nPING\r\n")); len(got) != 2 || got[1].Text != "PONG" {
			t.Fatalf("another client got %+v", got)
		}
	})
}

// withoutControls replaces the control characters that scripts may put into a line.
func withoutControls(replies string) string {
	b := []byte(replies)
	for i, c := range b {
		if c != '\r' && c != '\n' && (c < ' ' || c >= 0x7f) {
			b[i] = '?'
		}
	}
	return string(b)
}
