package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/app/usage"
)

// parseOptions parses a server's command line, environment and config file.
func parseOptions(args []string) (*Options, error) {
	o := &Options{}
	fs := o.FlagSet(o.FlagGroups())
	if err := fs.Parse(args); err != nil {
		return nil, usage.FlagError(fs.Name(), fs, err)
	}
	return o, o.Complete(fs, os.LookupEnv)
}

// TestNullIsText: the text null is quoted, without which it would be no value.
func TestNullIsText(t *testing.T) {
	if text := yamlValue(&pflag.Flag{}, "null"); text != `"null"` {
		t.Errorf("it is shown as %s", text)
	}
}

func TestEveryFlagIsAVariable(t *testing.T) {
	t.Setenv("CELLSERVER_MAXCLIENTS", "7")
	t.Setenv("CELLSERVER_BURST_IS_CAPACITY", "true")
	t.Setenv("CELLSERVER_SHUTDOWN_TIMEOUT", "3s")
	o, err := parseOptions([]string{"--maxclients", "8"})
	if err != nil || o.MaxClients != 8 || !o.BurstIsCapacity || o.ShutdownTimeout != 3*time.Second {
		t.Errorf("got %+v, %v; want the flag before the variable, and the variables", o, err)
	}
}

// TestRemovedSettings: a server does not start without a setting of an earlier version, and says what to do,
// wherever it is set.
func TestRemovedSettings(t *testing.T) {
	for name, instead := range usage.Removed() {
		want := "; it was removed: " + instead
		file := filepath.Join(t.TempDir(), "cellserver.yaml")
		if err := os.WriteFile(file, []byte(name+": 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct{ args, variable, want string }{
			{"--" + name + "=1", "", "unknown flag --" + name + want},
			{"--config=" + file, "", file + `:1: unknown setting "` + name + `"` + want},
			{"", "1", "unknown setting " + EnvName(name) + want},
		} {
			t.Setenv(EnvName(name), tt.variable)
			if _, err := parseOptions(strings.Fields(tt.args)); err == nil || err.Error() != tt.want {
				t.Errorf("%s: got %v, want %s", tt.args, err, tt.want)
			}
		}
		t.Setenv(EnvName(name), "")
	}
}

func TestReplicationFlags(t *testing.T) {
	const want = "--repl-user requires --repl-password-file: nobody logs in without a password"
	if _, err := parseOptions([]string{"--repl-user=replica", "--peer=127.0.0.1:1"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := parseOptions([]string{"--repl-password-file=x", "--peer=127.0.0.1:1"}); err != nil { // the default user's
		t.Error(err)
	}
}

// TestMaxMemoryOptions requires each error to say what to do.
func TestMaxMemoryOptions(t *testing.T) {
	for _, tt := range []struct{ flags, want string }{
		{"--maxmemory=lots", `--maxmemory takes auto or a size, such as 150mb; got "lots"`},
		{"--maxmemory=-1", `--maxmemory takes auto or a size, such as 150mb; got "-1"`},
		{"--maxmemory=20mb", "--maxmemory 20mb must be 0 for no maximum, or at least 48mb, got 20971520 bytes"},
		{"--maxmemory-policy=allkeys-lfu", `--maxmemory-policy takes volatile-ttl or noeviction; got "allkeys-lfu"`},
		{"--maxmemory-policy=x", `--maxmemory-policy takes volatile-ttl or noeviction; got "x"`},
	} {
		if _, err := parseOptions([]string{tt.flags}); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.flags, err, tt.want)
		}
	}
	for _, flags := range []string{"--maxmemory=auto", "--maxmemory=0", "--maxmemory=48mb", "--maxmemory=1G", "--maxmemory-policy=noeviction"} {
		if _, err := parseOptions([]string{flags}); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

// TestStoreFlags: what does not go together is refused in a line that names the flag, and never the URL's
// password.
func TestStoreFlags(t *testing.T) {
	const url = "--store=redis://:s3cret@127.0.0.1:6379"
	cannot := func(flag, why string) string { return "--" + flag + " cannot be used with this --store: " + why }
	for _, tt := range []struct {
		flags, want string
	}{
		{"--key-prefix=x --store-wait=1", "--key-prefix, --store-wait: only for a store on other machines; set --store, such as --store redis://127.0.0.1:6379"},
		{url + " --data-dir=/tmp", cannot("data-dir", "the store keeps the states")},
		{url + " --max-new-keys-per-second=5", cannot("max-new-keys-per-second", "only the store knows which keys are new")},
		{url + " --databases=2", cannot("databases", "its URL names the only database")},
		{url + " --maxmemory-policy=noeviction", cannot("maxmemory-policy", "that of its Redis decides")},
		{url + " --local-share=0.5", cannot("local-share", "it is about --on-store-error=local")},
		{url + " --on-store-error=x", `--on-store-error takes error, allow, deny or local; got "x"`},
		{"--store=redis-cluster://127.0.0.1:7000 --key-prefix={cs}:", "--key-prefix must not contain { on a cluster: what stands in braces there decides on the slot, and all keys would be in one, or apart from their own {tags}"},
		{url + " --on-store-error=local --local-share=0", `--local-share takes a part above 0 and at most 1, such as 0.25; got "0"`},
		{url + " --on-store-error=local --local-share=NaN", `--local-share takes a part above 0 and at most 1, such as 0.25; got "NaN"`},
		{url + " --store-timeout=1us", `--store-timeout takes a time from 1ms to 1m, such as 50ms, with its unit; got "1us"`},
		{url + " --store-wait=-1", `--store-wait takes a whole number from 0 to 100, such as 10; got "-1"`},
		{url + " --store-tls-ca=x", "the flags that begin with --store-tls require a --store with TLS, such as rediss://host:port"},
		{"--store=rediss://h --store-tls-cert=x", "--store-tls-cert and --store-tls-key require each other; set both"},
		{url + " --store-sentinel-user=x", "the flags that begin with --store-sentinel require a --store with sentinels, such as redis-sentinel://host:port/master"},
	} {
		_, err := parseOptions(strings.Fields(tt.flags))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.flags, err, tt.want)
		}
	}
	t.Setenv("CELLSERVER_DATA_DIR", "/tmp") // as Compose has it
	const byVariable = "CELLSERVER_DATA_DIR cannot be used with this --store: the store keeps the states"
	if _, err := parseOptions([]string{url}); err == nil || err.Error() != byVariable {
		t.Errorf("got %v, want %s", err, byVariable)
	}
	t.Setenv("CELLSERVER_DATA_DIR", "")
	for _, flags := range []string{
		"", "--store=memory", url, url + " --databases=1", url + " --on-store-error=local --local-share=0.25 --maxmemory-policy=noeviction",
		"--store=rediss-cluster://a,b --store-tls-ca=x",
	} {
		o, err := parseOptions(strings.Fields(flags))
		if err != nil {
			t.Errorf("%s: %v", flags, err)
		} else if want := map[bool]int{true: 1, false: 16}[o.IsRemote()]; o.Databases != want {
			t.Errorf("%s: %d databases, want %d", flags, o.Databases, want)
		}
	}
}
