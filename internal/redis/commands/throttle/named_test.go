package throttle_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

const defined = "CL.LIMIT SET login 4 5 60 99 100 86400\r\n"

// withLimits keeps limits in a directory and reads a file.
func withLimits(dir *disktest.Dir, file string) func(*commands.Config) {
	return func(c *commands.Config) {
		config := limitsfile.Config{File: file, Reading: c.Reading, Log: c.Log}
		if dir != nil {
			config.Dir = dir
		}
		c.NamedLimits = limitsfile.New(config)
	}
}

// TestCheckInTransactions sees the effects of commands before it.
func TestCheckInTransactions(t *testing.T) {
	t.Parallel()
	r := commandstest.New()
	s, other := r.Session(), r.Session()
	commandstest.Say(t, s, defined)
	commandstest.Expect(t, s, "MULTI\r\nCL.CHECK login bob 3\r\nCL.CHECK login bob 3\r\nEXISTS login\r\nCL.CHECK nosuch bob\r\nEXEC\r\n",
		"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n"+resptest.Ints(0, 5, 2, -1, 36)+resptest.Ints(1, 5, 2, 12, 36)+
			":0\r\n-ERR no such limit 'nosuch'; define it by CL.LIMIT SET or in --limits-file\r\n")
	commandstest.Say(t, s, "WATCH login:bob\r\nMULTI\r\nPING\r\n")
	commandstest.Expect(t, other, "CL.CHECK login bob\r\n", resptest.Ints(0, 5, 1, -1, 48))
	commandstest.Expect(t, s, "EXEC\r\n", "*-1\r\n")
}

// TestCheckInScripts: a script declares the whole key.
func TestCheckInScripts(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	commandstest.Say(t, s, defined)
	const script = `EVAL "return redis.call('cl.check', ARGV[1], ARGV[2])" 1 `
	commandstest.Expect(t, s, script+"login:bob login bob\r\n", resptest.Ints(0, 5, 4, -1, 12))
	commandstest.Expect(t, s, script+"login:bob login bob\r\n", resptest.Ints(0, 5, 3, -1, 24))
	for _, key := range []string{"bob", "login", "login:eve"} {
		commandstest.ExpectLike(t, s, script+key+" login bob\r\n",
			"…script used the key 'login:bob', which is not among the keys that it was given…")
	}
	for _, call := range []string{"'set','x','1','1','1'", "'del','x'", "'reload'", "'get','login'", "'list'"} {
		commandstest.ExpectLike(t, s, `EVAL "return redis.call('cl.limit',`+call+`)" 0`+"\r\n",
			"…not allowed from script…")
	}
}

// TestCheckOfUsers applies rules to the whole key, also for refunds.
func TestCheckOfUsers(t *testing.T) {
	t.Parallel()
	r := commandstest.NewUserHarness(t, "user default on nopass ~* +@all",
		"user api on >pw ~login:* +cl.check", "user both on >pw ~login:* +cl.check +cl.reset", "user bare on >pw ~bob +cl.check")
	admin, api, both, bare := r.Session(), r.Login("api"), r.Login("both"), r.Login("bare")
	commandstest.Say(t, admin, defined+"CL.LIMIT SET other 1 1 1\r\n")
	const noKey = "-NOPERM this user has no permissions to access one of the keys used as arguments"
	const needsReset = "-NOPERM this user has no permissions to run the 'cl.reset' command: a negative quantity needs the right to CL.RESET the key\r\n"
	commandstest.Expect(t, api, "CL.CHECK login bob 3\r\n", resptest.Ints(0, 5, 2, -1, 36))
	commandstest.Expect(t, api, "CL.CHECK other bob\r\n", noKey+"\r\n")
	commandstest.Expect(t, api, "CL.CHECK login bob -1\r\n", needsReset)
	commandstest.Expect(t, both, "CL.CHECK login bob -1\r\n", resptest.Ints(0, 5, 3, -1, 24))
	commandstest.Expect(t, both, "CL.CHECK other bob -1\r\n", noKey+"\r\n")
	commandstest.Expect(t, bare, "CL.CHECK login bob\r\n", noKey+"\r\n")
	commandstest.Expect(t, both, defined, "-NOPERM this user has no permissions to run the 'cl.limit|set' command\r\n")
	commandstest.Expect(t, admin, "ACL DRYRUN api CL.CHECK login bob -1\r\n",
		"$115\r\nThis user has no permissions to run the 'cl.reset' command: a negative quantity needs the right to CL.RESET the key\r\n")
}

// TestCheckOfLongKeys bounds the whole key.
func TestCheckOfLongKeys(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	commandstest.Say(t, s, defined)
	most := commandstest.MaxKeyBytes - len("login:")
	commandstest.Expect(t, s, "CL.CHECK login "+strings.Repeat("k", most)+"\r\n", resptest.Ints(0, 5, 4, -1, 12))
	commandstest.Expect(t, s, "CL.CHECK login "+strings.Repeat("k", most+1)+"\r\n", "-ERR key is longer than 4096 bytes, the limit of --max-key-bytes\r\n")
}

// TestLimitsByReading: with --burst-is-capacity, max_burst is the capacity everywhere.
func TestLimitsByReading(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	writeLimits(t, file, "limits: {file: {windows: [{max_burst: 4, count: 5, period: 60}]}}\n")
	s := commandstest.New(commandstest.WithReading(funnel.Capacity), withLimits(nil, file)).Session()
	commandstest.Expect(t, s, "CL.LIMIT SET command 4 5 60\r\nCL.LIMIT RELOAD\r\n", "+OK\r\n+OK\r\n")
	for _, name := range []string{"file", "command"} {
		commandstest.Expect(t, s, "CL.CHECK "+name+" bob\r\n", resptest.Ints(0, 4, 3, -1, 12))
		commandstest.ExpectLike(t, s, "CL.LIMIT GET "+name+"\r\n",
			"…*3\r\n:4\r\n:5\r\n:60\r\n…\r\n"+name+"\r\n…")
	}
}

func writeLimits(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLimitReload loads the whole file or nothing, and names the wrong line.
func TestLimitReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	writeLimits(t, file, "limits: {login: {windows: [{capacity: 5, count: 5, period: 1m}]}}\n")
	s := commandstest.New(withLimits(nil, file)).Session()
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\nCL.CHECK login bob 5\r\n", "+OK\r\n"+resptest.Ints(0, 5, 0, -1, 60))
	ofFile := "-ERR the limit 'login' is defined in " + file + "; change it there, and send CL.LIMIT RELOAD or SIGHUP\r\n"
	commandstest.Expect(t, s, "CL.LIMIT SET login 1 1 1\r\nCL.LIMIT DEL login\r\n", ofFile+ofFile)
	writeLimits(t, file, "limits:\n  new: {windows: [{capacity: 5, count: 5, period: 1m}]}\n  login: {windows: []}\n")
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\nCL.LIMIT LIST\r\n",
		"-ERR "+file+":3: a limit must have 1 to 16 windows, got 0\r\n*1\r\n$5\r\nlogin\r\n")
	writeLimits(t, file, "limits: {login: {windows: [{capacity: 7, count: 5, period: 1m}]}}\n")
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\nCL.CHECK login bob 3\r\n", "+OK\r\n"+resptest.Ints(1, 7, 2, 12, 60))
}

// TestLimitSetIsKept: a reply follows the sync of the definition; an error says that there was none.
func TestLimitSetIsKept(t *testing.T) {
	t.Parallel()
	dir := disktest.New()
	s := commandstest.New(withLimits(dir, "")).Session()
	kept := func() (n int) {
		n, _, err := limitsfile.CheckKept(dir.Kill())
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for i := range 3 {
		if commandstest.Expect(t, s, fmt.Sprintf("CL.LIMIT SET l%d 1 1 1\r\n", i), "+OK\r\n"); kept() != i+1 {
			t.Errorf("%d limits are kept, of %d", kept(), i+1)
		}
	}
	if commandstest.Expect(t, s, "CL.LIMIT DEL l0\r\n", ":1\r\n"); kept() != 2 {
		t.Errorf("%d limits are kept, of 2", kept())
	}
	commandstest.Expect(t, s, "MULTI\r\nCL.LIMIT SET m 1 1 1\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n")
	dir.Before = func(op disktest.Op, _ string) error {
		if op == disktest.Sync {
			return errors.New("no space")
		}
		return nil
	}
	commandstest.Expect(t, s, "CL.LIMIT SET l0 1 1 1\r\nCL.LIMIT LIST\r\n",
		"-ERR the data directory cannot be written, and nothing was changed: no space\r\n*3\r\n$2\r\nl1\r\n$2\r\nl2\r\n$1\r\nm\r\n")
}

// TestManyLimitChanges at once, during checks.
func TestManyLimitChanges(t *testing.T) {
	t.Parallel()
	const clients, changes = 4, 20
	dir := disktest.New()
	r := commandstest.New(withLimits(dir, ""))
	commandstest.Say(t, r.Session(), defined)
	var wg sync.WaitGroup
	for client := range clients {
		s := r.Session()
		wg.Go(func() {
			for i := range changes {
				commandstest.Expect(t, s, fmt.Sprintf("CL.LIMIT SET l%d-%d 1 1 1\r\nCL.LIMIT SET login %d 5 60\r\n", client, i, 1000+i), "+OK\r\n+OK\r\n")
				commandstest.ExpectLike(t, s, "CL.CHECK login bob\r\n", "*5\r\n:0\r\n:10…")
			}
		})
	}
	wg.Wait()
	if n, _, err := limitsfile.CheckKept(dir); n != clients*changes+1 || err != nil {
		t.Errorf("%d limits are kept, %v", n, err)
	}
	commandstest.ExpectLike(t, r.Session(), "CL.LIMIT GET login\r\n",
		"…"+fmt.Sprintf("allowed\r\n:%d\r\n", clients*changes)+"…")
}

// TestChecksAreCountedOnce, however often an EXEC or a script is attempted, and only if it is committed.
func TestChecksAreCountedOnce(t *testing.T) {
	t.Parallel()
	r := commandstest.New(commandstest.Meddling)
	s, other := r.Session(), r.Session()
	commandstest.Say(t, s, "CL.LIMIT SET once 1000 1000 60\r\nCL.LIMIT SET shadow 0 1 60 SHADOW\r\n")
	meddled := 0
	r.Meddle = func() {
		if meddled++; meddled <= 2 {
			commandstest.Say(t, other, "CL.THROTTLE k 1000 1000 60\r\n")
		}
	}
	script := resptest.Encode("EVAL", "redis.call('cl.check', 'once', 'bob') redis.call('cl.check', 'shadow', 'bob') redis.call('cl.throttle', 'k', 9000, 9000, 60) return redis.call('test.meddle')",
		"3", "once:bob", "shadow:bob", "k")
	commandstest.Expect(t, s, script, "+OK\r\n")
	if meddled < 2 {
		t.Fatalf("attempted %d times", meddled)
	}
	counted := func(name string, want namedlimit.Counts) {
		t.Helper()
		want1 := fmt.Sprintf("allowed\r\n:%d\r\n$7\r\nlimited\r\n:%d\r\n$14\r\nshadow_limited\r\n:%d\r\n", want.Allowed, want.Limited, want.ShadowLimited)
		commandstest.ExpectLike(t, s, "CL.LIMIT GET "+name+"\r\n", "…"+want1+"…")
	}
	counted("once", namedlimit.Counts{Allowed: 1})
	counted("shadow", namedlimit.Counts{Allowed: 1})
	commandstest.Say(t, s, "MULTI\r\n"+script+"CL.CHECK shadow bob\r\nEXEC\r\n")
	counted("once", namedlimit.Counts{Allowed: 2})
	counted("shadow", namedlimit.Counts{Allowed: 1, ShadowLimited: 2})
	if st := r.Stats(); st.Limited != 0 {
		t.Errorf("a shadow has limited %d", st.Limited)
	}
}

// TestWordsOfRules: those of the file are understood, and an error has the wrong one.
func TestWordsOfRules(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	commandstest.Expect(t, s, "CL.LIMIT SET login fixed_window 5 60 Approximate_Window 6 60 QUOTA 7 DAY\r\nCL.LIMIT OVERRIDE login k token_bucket 3 1 60\r\n", "+OK\r\n+OK\r\n")
	commandstest.ExpectLike(t, s, "CL.LIMIT GET login\r\n", "…FIXEDWINDOW 5 60\r\n…SLIDINGWINDOW 6 60 APPROX\r\n…QUOTA 7 DAY\r\n…")
	commandstest.ExpectLike(t, s, "CL.LIMIT EXPLAIN login k\r\n", "…command: TOKENBUCKET 3 1 60\r\n…")
	const policies = "rite PLAN plan | rules | DENY | UNLIMITED; a rule is FUNNEL max_burst count period |…\r\n"
	for args, want := range map[string]string{
		"OVERRIDE login k unlimitd":                 "unknown word 'unlimitd'; did you mean UNLIMITED? W" + policies,
		"OVERRIDE login k gcra 99 100 60":           "unknown word 'gcra'; w" + policies,
		"OVERRIDE login k 99 100 60":                "unknown word '99'; w" + policies,
		"OVERRIDE login k funnel 99 100 1m":         "funnel: '1m' is not an integer; the period is in seconds; write FUNNEL max_burst count period\r\n",
		"OVERRIDE login k fixedwindow 1 1 block":    "BLOCK has too few arguments; write BLOCK seconds [EACH]\r\n",
		"OVERRIDE login k fixedwindow 1 1 block 1m": "BLOCK: '1m' is not an integer; the time is in seconds; write BLOCK seconds [EACH]\r\n",
		"OVERRIDE login k fixedwindow 1 1 block 0":  "block must be 1 to 4611686018 seconds, got 0\r\n",
		"OVERRIDE login k quota x day":              "quota: 'x' is not an integer; write QUOTA max unit [TZ zone] [START start]\r\n",
		"OVERRIDE login k sliding_window 9":         "sliding_window has too few arguments; write SLIDINGWINDOW max period [APPROX]\r\n",
		"OVERRIDE login k funnel 9 10 60 EX 1h":     "EX must be a whole number of seconds, such as 3600, got '1h'\r\n",
		"SET login fixd_window 5 60":                "unknown word 'fixd_window'; did you mean FIXED_WINDOW? Write FUNNEL …\r\n",
		"SET login fixed_window 5 1m":               "fixed_window: '1m' is not an integer; the period is in seconds; write FIXEDWINDOW max period\r\n",
	} {
		commandstest.ExpectLike(t, s, "CL.LIMIT "+args+"\r\n", "-ERR "+want)
	}
}

// TestReloadsInTheLog: they are, refused ones, too, with who asked for them.
func TestReloadsInTheLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	r := commandstest.New(withLimits(nil, file))
	s := r.Session()
	for _, tt := range []struct{ text, reply, want string }{
		{"limits: {}\n", "+OK\r\n", ""}, // as at a start
		{"limits: {api: {unlimited: true}}\n", "+OK\r\n", `file=` + file + ` limits=1 added=1 changed=0 removed=0`},
		{"limits: {api: {unlimted: true}}\n", "-ERR " + file + ":1: …", `error="` + file + ":1: "},
	} {
		writeLimits(t, file, tt.text)
		r.Log.Reset()
		commandstest.ExpectLike(t, s, "CL.LIMIT RELOAD\r\n", tt.reply)
		if got := r.Log.String(); !strings.Contains(got, tt.want) || tt.want != "" && !strings.Contains(got, " client=") {
			t.Errorf("%s: logged %q, want %q", tt.text, got, tt.want)
		}
	}
}
