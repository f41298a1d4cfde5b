package remote

import (
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestStoreMistakes: a URL that is wrong ends the program with a line that says what to write, without any of
// it.
func TestStoreMistakes(t *testing.T) {
	file := harness.WriteFile(t, "s3cret")
	for url, want := range map[string]string{
		"redis://user:s3cret@host:port":                   "a port is not a number",
		"redis://:s3cret@a,b":                             "several hosts",
		"postgres://:s3cret@h":                            "a store's URL is redis://",
		"s3cret":                                          "a store's URL is redis://",
		"redis-sentinel://:s3cret@h":                      "the name of the master is missing",
		"redis://:s3cret@h --store-password-file=" + file: "it has a password, and another one is given apart",
		"redis://h --store-password-file=nosuch":          "cannot read --store-password-file nosuch",
		"rediss://:s3cret@h --store-tls-ca=nosuch":        "nosuch",
		"redis-cluster://:s3cret@a,b/3":                   "a cluster has database 0 only",
	} {
		code, _, errOut := harness.Call(t, []string{"CELLSERVER_STORE=" + strings.Fields(url)[0]}, append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", ""}, strings.Fields(url)[1:]...)...)
		if code == 0 || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, want) || strings.Contains(errOut, "s3cret") {
			t.Errorf("%s: got %d, %q, want %q", url, code, errOut, want)
		}
	}
}
