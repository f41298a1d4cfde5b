package operation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestSettingsThatNameOtherFiles: a file that a setting names may be a link to another one. Of each of its
// lines an error has at most a word, of no more than 32 bytes.
func TestSettingsThatNameOtherFiles(t *testing.T) {
	t.Parallel()
	const begins, secret = "0123456789abcdef0123456789abcdef", "5ecret"
	word := begins + secret
	texts := map[string]string{
		"a word for each line":   strings.Repeat(word+"\n", 3),
		"names and values":       word + ": " + word + "\n" + word + ": x\n",
		"words with spaces":      "user " + secret + " of: a\nroot " + secret + ": b\n",
		"a limit's name":         "limits:\n  " + word + " " + secret + ": {}\n",
		"a rule's fields":        "limits:\n  a:\n    rules: [{" + word + ": 1}, {algorithm: a " + secret + "}, {algorithm: quota, every: day, max_count: 1, time_zone: a " + secret + "}]\n",
		"a start":                "limits:\n  a:\n    rules: [{algorithm: quota, every: day, max_count: 1, start: a " + secret + "}]\n",
		"a period":               "limits:\n  a:\n    windows: [{max_burst: 1, count: 1, period: a " + secret + "}]\n",
		"an anchor":              "limits: *" + word + "\n",
		"a domain":               "domain: a " + secret + "\ndescriptors: [{key: " + word + ", value: x, rate_limit: {unit: a " + secret + ", requests_per_unit: b " + secret + "}}]\n",
		"a setting":              "timeout: a " + secret + "\n",
		"users":                  "user " + word + " +" + word + "\nuser a +" + word + "\nuser a on\n",
		"a password like /etc's": "root:$6$" + begins + secret + ":19000:0:99999:7:::\n",
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link := filepath.Join(t.TempDir(), "link.yaml")
			if err := os.Symlink(harness.WriteFile(t, text), link); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"--limits-file", link}, {"--config", link}, {"--aclfile", link}, {"--grpc-addr", "127.0.0.1:0", "--envoy-config", link},
				{"--http-addr", "127.0.0.1:0", "--http-tokens-file", link},
			} {
				p := harness.Start(t, harness.Command(t, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "", "--log-format", "json"}, args...)...))
				p.Eventually(t, "end or be ready", func() bool { return p.HasExited() || p.ReadReady() })
				p.Stop(t, os.Interrupt)
				if said := p.Log.String(); strings.Contains(said, secret) || strings.Contains(said, begins+"5") {
					t.Errorf("%q: %s", args, said)
				}
			}
		})
	}
}

// TestReloadOfAnotherFile: nor has the log after a reload, nor the reply to who asked for it.
func TestReloadOfAnotherFile(t *testing.T) {
	t.Parallel()
	limits := harness.WriteFile(t, "limits: {}\n")
	p := harness.StartServer(t, "--limits-file", limits)
	other := harness.WriteFile(t, "root of 5ecret: x\n")
	if err := os.Remove(limits); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, limits); err != nil {
		t.Fatal(err)
	}
	if got := harness.Reply(t, p.Dial(t), "CL.LIMIT RELOAD"); !strings.HasPrefix(got, "-ERR ") || strings.Contains(got, "5ecret") {
		t.Error(got)
	}
	if said := p.Log.String(); strings.Contains(said, "5ecret") {
		t.Error(said)
	}
}
