package throttle_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// TestFileOverrides: all are listed in the file's order with their rules, and CL.LIMIT GET has their number.
func TestFileOverrides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	writeLimits(t, file, `limits:
  api:
    rules: [{algorithm: funnel, max_burst: 4, count: 5, period: 60, name: all}]
    overrides:
      - {pattern: "a*", deny: true}
      - {keys: [acme, initech], plan: enterprise}
      - {keys: [eve], rules: [{algorithm: quota, max_count: 9, every: day, start: "06:00", name: q}, {algorithm: fixed_window, max_count: 9, period: 60}]}
  open: {unlimited: true}
  planned: {plan: enterprise}
plans:
  enterprise: {rules: [{algorithm: token_bucket, capacity: 7, refill: 1, period: 60}]}
`)
	s := commandstest.New(withLimits(nil, file)).Session()
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\nCL.LIMIT OVERRIDE api dan DENY\r\nCL.LIMIT SET mine 1 1 60\r\n", "+OK\r\n+OK\r\n+OK\r\n")
	all := "*2\r\n$1\r\n0\r\n*4\r\n" +
		"*4\r\n$7\r\npattern\r\n$2\r\na*\r\n$4\r\nDENY\r\n*0\r\n" +
		"*4\r\n$3\r\nkey\r\n$4\r\nacme\r\n$15\r\nPLAN enterprise\r\n*1\r\n$18\r\nTOKENBUCKET 7 1 60\r\n" +
		"*4\r\n$3\r\nkey\r\n$7\r\ninitech\r\n$15\r\nPLAN enterprise\r\n*1\r\n$18\r\nTOKENBUCKET 7 1 60\r\n" +
		"*4\r\n$3\r\nkey\r\n$3\r\neve\r\n$40\r\nQUOTA 9 DAY START 06:00 FIXEDWINDOW 9 60\r\n" +
		"*2\r\n$26\r\nq: QUOTA 9 DAY START 06:00\r\n$16\r\nFIXEDWINDOW 9 60\r\n"
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDES api FILE\r\nCL.LIMIT OVERRIDES api 0 file\r\n", all+all)
	const none = "*2\r\n$1\r\n0\r\n*0\r\n"
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDES open 0 FILE\r\nCL.LIMIT OVERRIDES mine 0 FILE\r\n", none+none)
	commandstest.Expect(t, s, "CL.LIMIT OVERRIDES api 0 FIL\r\nCL.LIMIT OVERRIDES api 0 0 FILE\r\nCL.LIMIT OVERRIDES api FILE FILE\r\nCL.LIMIT OVERRIDES none 0 FILE\r\n",
		strings.Repeat("-ERR invalid cursor\r\n", 3)+"-ERR no such limit 'none'; define it by CL.LIMIT SET or in --limits-file\r\n")
	const noOptions = "$4\r\nunit\r\n$-1\r\n$15\r\nmax_reservation\r\n$-1\r\n"
	for name, end := range map[string]string{
		"api": "FUNNEL 4 5 60\r\n$14\r\nfile_overrides\r\n:4\r\n", "open": "UNLIMITED\r\n$14\r\nfile_overrides\r\n:0\r\n",
		"planned": "PLAN enterprise\r\n$14\r\nfile_overrides\r\n:0\r\n", "mine": "FUNNEL 1 1 60\r\n$14\r\nfile_overrides\r\n:0\r\n",
	} {
		if got := commandstest.Say(t, s, "CL.LIMIT GET "+name+"\r\n"); !strings.Contains(got, end) || !strings.HasSuffix(got, noOptions) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestFileOverridesOfUsers leave out what a user may not read.
func TestFileOverridesOfUsers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "limits.yml")
	writeLimits(t, file, `limits: {api: {deny: true, overrides: [{keys: [alice, bob], deny: true}, {pattern: "a?", deny: true}, {pattern: "*", deny: true}]}}`)
	r := commandstest.NewUserHarnessOf(t, func(c *commands.Config) { withLimits(nil, file)(c) }, "user default on nopass ~* +@all", "user own on >pw ~api:a* +cl.limit")
	commandstest.Expect(t, r.Session(), "CL.LIMIT RELOAD\r\n", "+OK\r\n")
	const shown = "*4\r\n$3\r\nkey\r\n$5\r\nalice\r\n$4\r\nDENY\r\n*0\r\n*4\r\n$7\r\npattern\r\n$2\r\na?\r\n$4\r\nDENY\r\n*0\r\n"
	commandstest.Expect(t, r.Login("own"), "CL.LIMIT OVERRIDES api 0 FILE\r\n", "*2\r\n$1\r\n0\r\n*2\r\n"+shown)
}

// TestPagesOfFileOverrides: the pages have all of them in order, until a reload.
func TestPagesOfFileOverrides(t *testing.T) {
	t.Parallel()
	const keys = 2500
	file := filepath.Join(t.TempDir(), "limits.yml")
	var text strings.Builder
	text.WriteString("limits:\n  api:\n    deny: true\n    overrides:\n")
	for i := range keys / 5 {
		fmt.Fprintf(&text, "      - {keys: [k%d, k%d, k%d, k%d, k%d], deny: true}\n", 5*i, 5*i+1, 5*i+2, 5*i+3, 5*i+4)
	}
	writeLimits(t, file, text.String())
	s := commandstest.New(withLimits(nil, file)).Session()
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\n", "+OK\r\n")
	var cursors []string
	listed := 0
	for cursor := "0"; len(cursors) == 0 || cursor != "0"; {
		page := resptest.ParseAll(t, commandstest.Say(t, s, "CL.LIMIT OVERRIDES api "+cursor+" FILE\r\n"))[0]
		for _, o := range page.Elements[1].Elements {
			if want := fmt.Sprintf("k%d", listed); o.Elements[1].Text != want {
				t.Fatalf("got %s, want %s", o.Elements[1].Text, want)
			}
			listed++
		}
		cursor = page.Elements[0].Text
		cursors = append(cursors, cursor)
	}
	if listed != keys || len(cursors) != 3 {
		t.Errorf("listed %d in %d pages", listed, len(cursors))
	}
	commandstest.Expect(t, s, "CL.LIMIT RELOAD\r\nCL.LIMIT OVERRIDES api "+cursors[0]+" FILE\r\nCL.LIMIT OVERRIDES api 18446744073709551615 FILE\r\n",
		"+OK\r\n"+strings.Repeat("-ERR the file of limits was reloaded since this cursor; begin with 0\r\n", 2))
}
