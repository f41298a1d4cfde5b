package throttle_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestOverridesAreKept: a reply follows the sync of the override; an error says that there was none.
func TestOverridesAreKept(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	s := commandstest.New(withLimits(dir, "")).Session()
	commandstest.Say(t, s, defined)
	listed := func(dir *disktest.Dir) string {
		r := commandstest.New(withLimits(dir, ""))
		if err := r.Config.NamedLimits.Load(); err != nil {
			t.Fatal(err)
		}
		return commandstest.Say(t, r.Session(), "CL.LIMIT OVERRIDES login\r\n")
	}
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE login bob DENY\r\n", "+OK\r\n")
	if got := listed(dir.Kill()); !strings.Contains(got, "$3\r\nbob\r\n$4\r\nDENY\r\n:-1\r\n") {
		t.Errorf("kept %q", got)
	}
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE login bob DEL\r\nCL.LIMIT OVERRIDE login eve QUOTA 3 DAY TZ Europe/Berlin EX 100\r\n", ":1\r\n+OK\r\n")
	if got := listed(dir.Kill()); strings.Contains(got, "bob") || !strings.Contains(got, "$28\r\nQUOTA 3 DAY TZ Europe/Berlin\r\n:100\r\n") {
		t.Errorf("kept %q", got)
	}
	dir.Before = func(op disktest.Op, _ string) error {
		if op == disktest.Sync {
			return errors.New("no space")
		}
		return nil
	}
	const failed = "-ERR the data directory cannot be written, and nothing was changed: no space\r\n"
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE login dan DENY\r\nCL.LIMIT OVERRIDE login eve DEL\r\n", failed+failed)
	commandstest.ExpectLike(t, s, "CL.CHECK login dan\r\nCL.CHECK login eve\r\n", "*5\r\n:0\r\n:5\r\n:4…*5\r\n:0\r\n:3\r\n:2…")
	dir.Before = nil
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE login dan DENY\r\n", "+OK\r\n")
	if got := listed(dir.Kill()); !strings.Contains(got, "dan") || !strings.Contains(got, "eve") {
		t.Errorf("kept %q", got)
	}
}

// TestOverridesOfTheFile: exact keys, then patterns; one by a command holds before them until it is deleted
// or ends, also across reloads.
func TestOverridesOfTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	const text = `limits:
  api:
    rules: [{algorithm: fixed_window, max_count: 9, period: 60}]
    overrides:
      - {keys: [acme, initech], plan: enterprise}
      - {pattern: "a*", deny: true}
      - {pattern: "?b*", unlimited: true}
plans:
  enterprise: {rules: [{algorithm: token_bucket, capacity: %d, refill: 1, period: 60}]}
`
	writeLimits(t, file, fmt.Sprintf(text, 7))
	r := commandstest.New(withLimits(nil, file))
	s := r.Session()
	limit := func(key string, want string) {
		t.Helper()
		commandstest.ExpectLike(t, s, "CL.CHECK api "+key+" 0\r\n", "*5\r\n:…\r\n:"+want+"\r\n…")
	}
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\n", "+OK\r\n")
	limit("acme", "7")
	limit("abc", "0")
	limit("bbc", "9223372036854775807")
	limit("other", "9")
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE api acme FUNNEL 2 1 60\r\nCL.LIMIT OVERRIDE api other PLAN enterprise EX 60\r\n", "+OK\r\n+OK\r\n")
	limit("acme", "3")
	limit("other", "7")
	writeLimits(t, file, fmt.Sprintf(text, 8))
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\n", "+OK\r\n")
	limit("acme", "3")
	limit("other", "8")
	limit("initech", "8")
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDE api acme DEL\r\n", ":1\r\n")
	limit("acme", "8")
	commandstest.ExpectLike(t, s, "CL.LIMIT EXPLAIN api abc\r\n", "*2\r\n$21\r\nfile pattern a*: DENY\r\n…")
	commandstest.ExpectLike(t, s, "CL.LIMIT EXPLAIN api acme\r\n", "*2\r\n$25\r\nfile key: PLAN enterprise\r\n*2\r\n$18\r\nTOKENBUCKET 8 1 60\r\n…")
	commandstest.Expect(t, s, "CL.LIMIT SET api 1 1 1\r\n", "-ERR the limit 'api' is defined in "+file+"; change it there, and send CL.LIMIT RELOAD or SIGHUP\r\n")
	writeLimits(t, file, "limits: {api: {unlimited: true}}\n")
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\n", "+OK\r\n")
	limit("other", "9223372036854775807") // its plan is gone
	commandstest.ExpectLike(t, s, "CL.LIMIT OVERRIDES api\r\n", "…other\r\n$15\r\nPLAN enterprise\r\n…")
}

// TestOverridesOfUsers: OVERRIDE, EXPLAIN and the entries of OVERRIDES need the right to the key.
func TestOverridesOfUsers(t *testing.T) {
	t.Parallel()
	r := commandstest.NewUserHarness(t, "user default on nopass ~* +@all",
		"user own on >pw ~login:a* +cl.limit +cl.mcheck", "user reader on >pw %R~login:* +cl.limit")
	admin, own, reader := r.Session(), r.Login("own"), r.Login("reader")
	commandstest.Say(t, admin, defined+"CL.LIMIT OVERRIDE login bob DENY\r\nCL.LIMIT OVERRIDE login alice DENY\r\n")
	const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	commandstest.Expect(t, own, "CL.LIMIT OVERRIDE login bob DEL\r\nCL.LIMIT EXPLAIN login bob\r\nCL.LIMIT OVERRIDE login anna UNLIMITED\r\n", noKey+noKey+"+OK\r\n")
	commandstest.ExpectLike(t, own, "CL.LIMIT EXPLAIN login anna\r\n", "*2\r\n$18\r\ncommand: UNLIMITED\r\n…")
	if got := commandstest.Say(t, own, "CL.LIMIT OVERRIDES login\r\n"); strings.Contains(got, "bob") || !strings.Contains(got, "alice") {
		t.Errorf("own sees %q", got)
	}
	commandstest.Expect(t, reader, "CL.LIMIT OVERRIDE login bob DEL\r\n", noKey)
	commandstest.ExpectLike(t, reader, "CL.LIMIT EXPLAIN login bob\r\n", "*2\r\n$13\r\ncommand: DENY\r\n…")
	commandstest.Expect(t, own, "CL.MCHECK 2 login alice login bob\r\n", noKey)
	commandstest.Expect(t, own, "CL.MCHECK 1 login alice\r\n", "*2\r\n:1\r\n"+resptest.Ints(1, 0, 0, -1, 0))
}

// TestOverridesTimeLeft: the time left is as of the reply; the listing may have waited for a change.
func TestOverridesTimeLeft(t *testing.T) {
	t.Parallel()
	nowNs := commandstest.T0
	stepNs := int64(0)
	s := commandstest.New(func(c *commands.Config) {
		c.NamedLimits = limitsfile.New(limitsfile.Config{Reading: c.Reading, Log: slog.New(slog.DiscardHandler), Now: func() int64 {
			nowNs += stepNs
			return nowNs
		}})
	}).Session()
	commandstest.Say(t, s, defined+"CL.LIMIT OVERRIDE login bob DENY EX 100\r\n")
	beganNs := nowNs
	stepNs = 10 * int64(time.Second)
	got := commandstest.Say(t, s, "CL.LIMIT OVERRIDES login\r\n")
	if want := fmt.Sprintf(":%d\r\n", 100-(nowNs-beganNs)/int64(time.Second)); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want the end %q", got, want)
	}
}

// TestManyOverrides: all are found and listed once, whatever happens between the pages.
func TestManyOverrides(t *testing.T) {
	t.Parallel()
	const keys = 3500
	s := commandstest.New().Session()
	commandstest.Say(t, s, defined)
	for i := range keys {
		commandstest.Expect(t, s, fmt.Sprintf("CL.LIMIT OVERRIDE login k%d FIXEDWINDOW %d 60\r\n", i, i+1), "+OK\r\n")
		if i%7 == 0 {
			commandstest.Expect(t, s, fmt.Sprintf("CL.LIMIT OVERRIDE login k%d DEL\r\n", i), ":1\r\n")
		}
	}
	for i := range keys {
		want := fmt.Sprintf("*5\r\n:0\r\n:%d\r\n…", i+1)
		if i%7 == 0 {
			want = "*5\r\n:0\r\n:5\r\n…"
		}
		commandstest.ExpectLike(t, s, fmt.Sprintf("CL.CHECK login k%d 0\r\n", i), want)
	}
	seen, cursor, pages := map[string]int{}, "0", 0
	for ok := true; ok; ok = cursor != "0" {
		page := resptest.ParseAll(t, commandstest.Say(t, s, "CL.LIMIT OVERRIDES login "+cursor+"\r\n"))[0]
		for _, o := range page.Elements[1].Elements {
			seen[o.Elements[0].Text]++
		}
		cursor = page.Elements[0].Text
		pages++
	}
	if len(seen) != keys-keys/7 || pages < 3 {
		t.Errorf("listed %d keys in %d pages, want %d", len(seen), pages, keys-keys/7)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was listed %d times", key, n)
		}
	}
}

// TestMCheckInTransactions: in EXEC and in scripts pairs are declared as keys.
func TestMCheckInTransactions(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	commandstest.Say(t, s, defined)
	commandstest.Expect(t, s, "MULTI\r\nCL.CHECK login bob 4\r\nCL.MCHECK 2 login bob login eve\r\nCL.MCHECK 2 login bob login eve\r\nEXEC\r\n",
		"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n"+resptest.Ints(0, 5, 1, -1, 48)+
			"*3\r\n:0\r\n"+resptest.Ints(0, 5, 0, -1, 60)+resptest.Ints(0, 5, 4, -1, 12)+
			"*3\r\n:1\r\n"+resptest.Ints(1, 5, 0, 12, 60)+resptest.Ints(0, 5, 4, -1, 12))
	const script = `EVAL "return redis.call('cl.mcheck', 2, 'login', 'dan', 'login', 'fay')[1]" 2 login:dan `
	commandstest.Expect(t, s, script+"login:fay\r\n", ":0\r\n")
	commandstest.ExpectLike(t, s, script+"fay\r\n", "…script used the key 'login:fay', which is not among the keys that it was given…")
}

// TestOverridesInTheLog: DEL is in it if it has ended an override.
func TestOverridesInTheLog(t *testing.T) {
	t.Parallel()
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, defined)
	for _, tt := range []struct{ args, reply, want string }{
		{"DEL", ":0\r\n", ""},
		{"DENY", "+OK\r\n", `msg="override set by CL.LIMIT OVERRIDE" limit=login key=bob client=`},
		{"DEL", ":1\r\n", `msg="override ended by CL.LIMIT OVERRIDE" limit=login key=bob client=`},
		{"DEL", ":0\r\n", ""},
	} {
		r.Log.Reset()
		commandstest.Expect(t, s, "CL.LIMIT OVERRIDE login bob "+tt.args+"\r\n", tt.reply)
		if got := r.Log.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: logged %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestCountsOfRules have none of the overrides' decisions, of a limit with one rule and with two.
func TestCountsOfRules(t *testing.T) {
	t.Parallel()
	for _, rules := range []string{"QUOTA 5 DAY", "QUOTA 5 DAY QUOTA 5 YEAR"} {
		s := commandstest.New().Session()
		commandstest.Say(t, s, "CL.LIMIT SET api "+rules+"\r\nCL.LIMIT OVERRIDE api bob QUOTA 1 DAY\r\nCL.LIMIT OVERRIDE api eve DENY\r\n"+
			strings.Repeat("CL.CHECK api bob\r\n", 4)+"CL.CHECK api eve\r\n"+strings.Repeat("CL.CHECK api own\r\n", 6))
		const counts = "$7\r\nallowed\r\n:%d\r\n$7\r\nlimited\r\n:%d\r\n$14\r\nshadow_limited\r\n:0\r\n$4\r\nnear\r\n:%d\r\n$14\r\ncharged_beyond\r\n:0\r\n"
		own := "$11\r\nQUOTA 5 DAY\r\n" + fmt.Sprintf(counts, 5, 1, 2)
		commandstest.ExpectLike(t, s, "CL.LIMIT GET api\r\n", "…"+fmt.Sprintf(counts, 6, 5, 3)+"$10\r\noverridden\r\n:5\r\n…"+own+"…")
	}
}
