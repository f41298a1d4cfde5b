package throttle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/keep/persist/disk/disktest"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// options are those in a reply of CL.LIMIT GET.
func options(unit, share string) string {
	orNull := func(text string) string {
		if text == "" {
			return "$-1\r\n"
		}
		return bulk(text)
	}
	return bulk("unit") + orNull(unit) + bulk("max_reservation") + orNull(share)
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// TestOptionsOfSet: the words behind the rules come in any order, also behind the old form.
func TestOptionsOfSet(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	for words, want := range map[string]string{
		"QUOTA 50000000 MONTH":                                     options("", ""),
		"QUOTA 50000000 MONTH UNIT usd":                            options("usd", ""),
		"quota 50000000 month unit USD maxreservation 0.5":         options("usd", "0.5"),
		"QUOTA 5 DAY TZ Europe/Berlin MAXRESERVATION .25 UNIT usd": options("usd", "0.25"),
		"FIXEDWINDOW 5 60 BLOCK 60 EACH MAXRESERVATION 1":          options("", "1"),
		"FUNNEL 4 5 60 SHADOW UNIT usd":                            options("usd", ""),
		"4 5 60 UNIT usd MAXRESERVATION 1e-3 SHADOW":               options("usd", "0.001"),
		"4 5 60 9 10 3600 MAXRESERVATION 0.5":                      options("", "0.5"),
	} {
		commandstest.Expect(t, s, "CL.LIMIT SET spend "+words+"\r\n", "+OK\r\n")
		got := commandstest.Say(t, s, "CL.LIMIT GET spend\r\n")
		if isShadow := strings.Contains(got, "shadow\r\n:1\r\n"); !strings.HasSuffix(got, want) || isShadow != strings.Contains(words, "SHADOW") {
			t.Errorf("%s: got %q", words, got)
		}
	}
}

// TestSameRulesKeepOptions: with SAMERULES, options that are left out stay.
func TestSameRulesKeepOptions(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	const set = "CL.LIMIT SET spend FIXEDWINDOW 9 60 "
	commandstest.Expect(t, s, set+"UNIT usd MAXRESERVATION 0.5\r\n"+set+"SHADOW SAMERULES\r\n", "+OK\r\n+OK\r\n")
	if got := commandstest.Say(t, s, "CL.LIMIT GET spend\r\n"); !strings.HasSuffix(got, options("usd", "0.5")) || !strings.Contains(got, "shadow\r\n:1\r\n") {
		t.Errorf("got %q", got)
	}
	commandstest.Expect(t, s, set+"MAXRESERVATION 0.6 SAMERULES\r\n"+set+"UNIT usd SAMERULES\r\n",
		"-ERR the limit 'spend' has another unit or max_reservation; nothing was changed\r\n+OK\r\n")
	commandstest.Expect(t, s, set+"\r\n", "+OK\r\n")
	if got := commandstest.Say(t, s, "CL.LIMIT GET spend\r\n"); !strings.HasSuffix(got, options("", "")) {
		t.Errorf("got %q", got)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	const syntax = "syntax error; usage: CL.LIMIT SET …\r\n"
	for words, want := range map[string]string{
		"UNIT eur":                                "unit must be usd, of which integers are millionths, or be left out, got 'eur'\r\n",
		"UNIT":                                    "UNIT needs a value; write UNIT usd\r\n",
		"UNIT SHADOW":                             "unit must be usd, of which integers are millionths, or be left out, got 'shadow'\r\n",
		"MAXRESERVATION":                          "MAXRESERVATION needs a share, such as 0.5\r\n",
		"MAXRESERVATION 0":                        "max_reservation must be above 0 and at most 1, such as 0.5, got '0'\r\n",
		"MAXRESERVATION 1.1":                      "max_reservation must be above 0 and at most 1, such as 0.5, got '1.1'\r\n",
		"MAXRESERVATION 50%":                      "max_reservation must be above 0 and at most 1, such as 0.5, got '50%'\r\n",
		"MAXRESERVATION nan":                      "max_reservation must be above 0 and at most 1, such as 0.5, got 'nan'\r\n",
		"UNIT usd UNIT usd":                       syntax,
		"SHADOW SHADOW":                           syntax,
		"MAXRESERVATION 0.5 MAXRESERVATION 0.5":   syntax,
		"UNIT usd FIXEDWINDOW 5 60":               syntax,
		"CURRENCY usd":                            syntax,
		"UNIT usd SAMERULES MAXRESERVATION 0.500": syntax,
	} {
		for _, rules := range []string{"FIXEDWINDOW 9 60 ", "4 5 60 "} {
			if rules == "4 5 60 " && words == "CURRENCY usd" {
				continue // not an option, so a number that is wrong
			}
			commandstest.ExpectLike(t, s, "CL.LIMIT SET spend "+rules+words+"\r\n", "-ERR "+want)
		}
	}
	commandstest.Expect(t, s, "CL.LIMIT LIST\r\n", "*0\r\n")
}

// TestOptionsAreKept through restarts, with --data-dir and by the file.
func TestOptionsAreKept(t *testing.T) {
	t.Parallel()
	dir, file := disktest.New(), filepath.Join(t.TempDir(), "limits.yml")
	writeLimits(t, file, "limits: {api: {rules: [{algorithm: fixed_window, max_count: 2000000, period: 1m}], unit: usd, max_reservation: 0.1}}\n")
	start := func(dir *disktest.Dir) func(line, want string) {
		r := commandstest.New(func(c *commands.Config) { withLimits(dir, file)(c) })
		if err := r.Config.NamedLimits.Load(); err != nil {
			t.Fatal(err)
		}
		if err := r.Config.NamedLimits.Reload(); err != nil {
			t.Fatal(err)
		}
		s := r.Session()
		return func(line, want string) {
			t.Helper()
			if got := commandstest.Say(t, s, line+"\r\n"); !strings.HasSuffix(got, want) {
				t.Errorf("%s: got %q", line, got)
			}
		}
	}
	say := start(dir)
	say("CL.LIMIT SET spend QUOTA 50000000 MONTH UNIT usd MAXRESERVATION 0.5", "+OK\r\n")
	say("CL.LIMIT OVERRIDE spend big FIXEDWINDOW 80000000 60", "+OK\r\n")
	for range 2 {
		say("CL.LIMIT GET spend", options("usd", "0.5"))
		say("CL.LIMIT GET api", options("usd", "0.1"))
		say("CL.LIMIT EXPLAIN spend big", bulk("FIXEDWINDOW 80000000 60 ($80.00 of $80.00 left)")+resptest.Ints(0, 80_000_000, 79_999_999, -1, 60))
		say("CL.LIMIT EXPLAIN api k", "*2\r\n$-1\r\n*2\r\n"+bulk("FIXEDWINDOW 2000000 60 ($2.00 of $2.00 left)")+resptest.Ints(0, 2_000_000, 1_999_999, -1, 60))
		say = start(dir.Kill())
	}
}

// TestExplainDollars: the integers stay, and the text has what is left of what.
func TestExplainDollars(t *testing.T) {
	t.Parallel()
	s := commandstest.New().Session()
	commandstest.Expect(t, s, "CL.LIMIT SET spend FIXEDWINDOW 50000000 60 UNIT usd\r\nCL.CHECK spend k 12340000\r\n", "+OK\r\n"+resptest.Ints(0, 50_000_000, 37_660_000, -1, 60))
	commandstest.Expect(t, s, "CL.LIMIT EXPLAIN spend k\r\n", "*2\r\n$-1\r\n*2\r\n"+
		bulk("FIXEDWINDOW 50000000 60 ($37.66 of $50.00 left)")+resptest.Ints(0, 50_000_000, 37_659_999, -1, 60))
}
