//go:build unix

package operation

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"cellserver/e2e/harness"
	"cellserver/internal/app/settings"
)

// TestNamedFilesAreBounded: a file named by a setting is not read without end.
func TestNamedFilesAreBounded(t *testing.T) {
	t.Parallel()
	const endless, xds = "/dev/zero", "envoy-xds=127.0.0.1:1 envoy-xds-tls grpc-addr=127.0.0.1:0"
	files, _ := harness.NewTLSFiles(t)
	others := map[string]string{ // settings that each one requires
		"tls-cert": "tls-addr=127.0.0.1:0 tls-key=" + files.Key, "tls-key": "tls-addr=127.0.0.1:0 tls-cert=" + files.Cert,
		"tls-client-ca":    "tls-addr=127.0.0.1:0 tls-cert=" + files.Cert + " tls-key=" + files.Key,
		"metrics-tls-cert": "metrics-tls-key=" + files.Key, "metrics-tls-key": "metrics-tls-cert=" + files.Cert,
		"http-tokens-file": "http-addr=127.0.0.1:0", "store-password-file": "store=redis://127.0.0.1:1", "store-sentinel-password-file": "store=redis-sentinel://127.0.0.1:1/m",
		"store-tls-ca": "store=rediss://127.0.0.1:1", "store-tls-cert": "store=rediss://127.0.0.1:1 store-tls-key=" + files.Key,
		"repl-tls-ca": "repl-tls", "repl-tls-cert": "repl-tls repl-tls-key=" + files.Key, "repl-tls-key": "repl-tls repl-tls-cert=" + files.Cert,
		"store-tls-key": "store=rediss://127.0.0.1:1 store-tls-cert=" + files.Cert, "envoy-xds-tls-ca": xds,
		"envoy-xds-tls-cert": xds + " envoy-xds-tls-key=" + files.Key, "envoy-xds-tls-key": xds + " envoy-xds-tls-cert=" + files.Cert,
	}
	n := 0
	for _, group := range (&settings.Options{}).FlagGroups() {
		group.Flags.VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); kind != "file" {
				return
			}
			n++
			args := []string{"config", "check", "--" + f.Name + "=" + endless}
			for other := range strings.FieldsSeq(others[f.Name]) {
				args = append(args, "--"+other)
			}
			most := "4 MiB"
			if f.Name == "limits-file" {
				most = "16 MiB"
			}
			code, out, errOut := harness.Call(t, nil, args...)
			if code == 0 || strings.Count(out, "\n") != 1 || !strings.Contains(out, endless) || !strings.HasSuffix(out, ": it is longer than "+most+"\n") {
				t.Errorf("--%s: %d, %q, %q", f.Name, code, out, errOut)
			}
		})
	}
	if n < 16 {
		t.Errorf("%d settings name a file", n)
	}
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, bytes.Repeat([]byte("x"), 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"shadow", "--from", "127.0.0.1:1", "--password-file", long},
		{"shadow", "--from", "127.0.0.1:1", "--tls", "--tls-ca", long},
		{"shadow", "--from", "127.0.0.1:1", "--tls", "--tls-client-cert", long, "--tls-client-key", long},
	} {
		if code, _, errOut := harness.Call(t, nil, args...); code == 0 ||
			!strings.HasSuffix(errOut, long+": it is longer than 4 MiB\n") {
			t.Errorf("%q: %d, %q", args, code, errOut)
		}
	}
}
