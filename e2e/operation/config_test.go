package operation

import (
	"os"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// TestConfigPrecedence: flag before variable before file before default; config show names the source.
func TestConfigPrecedence(t *testing.T) {
	t.Parallel()
	path := harness.WriteFile(t, "maxclients: 1\ndatabases: 2\ntimeout: 3\nlua: false\nmetrics-allowed-hosts: [a, b]\nrequirepass: s3cret\nprotected-mode: no\n")
	env := []string{"CELLSERVER_CONFIG=" + path, "CELLSERVER_MAXCLIENTS=10", "CELLSERVER_DATABASES=20"}
	code, out, errOut := harness.Call(t, env, "config", "show", "--maxclients", "100")
	if code != 0 || errOut != "" {
		t.Fatalf("got %d, %q", code, errOut)
	}
	for _, want := range []string{
		"maxclients: 100 # --maxclients", "databases: 20 # CELLSERVER_DATABASES", "timeout: 3s # " + path + ":3",
		`lua: off # ` + path + ":4", "metrics-allowed-hosts: [a, b] # " + path + ":5", "#requirepass: (not shown) # " + path + ":6",
		"protected-mode: no # " + path + ":7", "input-timeout: 30s # default", `unixsocket: "" # default`,
	} {
		if fields := strings.Join(strings.Fields(out), " "); !strings.Contains(fields, want) {
			t.Errorf("config show has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "s3cret") {
		t.Errorf("config show has the password:\n%s", out)
	}
	again := harness.WriteFile(t, out)
	if code, out, errOut := harness.Call(t, nil, "config", "check", "--config", again); code != 0 || out != "ok\n" || errOut != "" {
		t.Errorf("the output of config show is no config file: %d, %q, %q", code, out, errOut)
	}
}

func TestServerTakesItsConfigFile(t *testing.T) {
	t.Parallel()
	path := harness.WriteFile(t, "maxclients: 77\ntimeout: 3600.5\nmax-key-bytes: 1000\n")
	p := harness.StartServer(t, "--config", path, "--max-key-bytes", "2000")
	nc := p.Dial(t)
	harness.Exchange(t, nc, "CONFIG GET maxclients\r\nCONFIG GET max-key-bytes\r\n", "*2\r\n$10\r\nmaxclients\r\n$2\r\n77\r\n*2\r\n$13\r\nmax-key-bytes\r\n$4\r\n2000\r\n")
	if code, out, errOut := p.Health(t, nil, "--config", harness.WriteFile(t, "maxclients: 5\nmetrics-addr: "+p.Metrics+"\n")); code != 0 || out != "ok\n" {
		t.Errorf("health by the file's metrics-addr: %d, %q, %q", code, out, errOut)
	}
	// A server may run while its file has mistakes.
	for text, said := range map[string]string{"nonsense: 5\nmetrics-addr: " + p.Metrics + "\n": `:1: unknown setting "nonsense"`, "a: [": ":2: not YAML"} {
		code, out, errOut := p.Health(t, []string{"CELLSERVER_METRICS_ADDR=" + p.Metrics}, "--config", harness.WriteFile(t, text))
		if code != 0 || out != "ok\n" || !strings.Contains(errOut, said) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("health by a file with a mistake: %d, %q, %q", code, out, errOut)
		}
	}
}

// TestConfigMistakes requires a line for each mistake, with the file, the line and the correction.
func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", "ok"},
		{"# nothing\n", "ok"},
		{"timeout: 90\ninput-timeout: '0.5'\nlua: yes\n", "ok"},
		{"a: [b\n", "F:2: not YAML: did not find expected ',' or ']'"},
		{"- maxclients\n", "F:1: the file must be a mapping"},
		{"max-clients: 5\n", `F:1: unknown setting "max-clients"; did you mean maxclients?`},
		{"lua_time_limit: 50ms\n", `F:1: unknown setting "lua_time_limit"; did you mean lua-time-limit?`},
		{"MAXCLIENTS: 5\nport: 6379\n", "F:1: unknown setting \"MAXCLIENTS\"; did you mean maxclients?\nF:2: unknown setting \"port\"; use addr"},
		{"zzz: 5\n", `F:1: unknown setting "zzz"; cellserver --help lists them`},
		{"config: x\n", `F:1: unknown setting "config"; cellserver --help lists them`},
		{"help: true\nversion: true\n", "F:1: unknown setting \"help\"; cellserver --help lists them\nF:2: unknown setting \"version\"; cellserver --help lists them"},
		{"maxclients: 5\n\nmaxclients: 6\n", `F:3: "maxclients" is in line 1 already`},
		{"requirepass:\n", `F:1: requirepass has no value; write "" for an empty one`},
		{"addr: {host: a}\n", "F:1: addr must be one value, not a mapping"},
		{"timeout: [a, b]\n", "F:1: timeout takes one value, not a list"},
		{"metrics-allowed-hosts: [[a]]\n", "F:1: metrics-allowed-hosts must be a list of words"},
		{"log-level: inf\n", `F:1: log-level takes debug, info, warn or error; got "inf"; did you mean info?`},
		{"lua-time-limit: 50\n", `F:1: lua-time-limit takes a time of at least 1ms, such as 50ms, with its unit; got "50"`},
		{"timeout: soon\nmaxclients: many\n", "F:1: timeout takes a time of at least 0, such as 30s, or seconds, such as 30; got \"soon\"\n" +
			"F:2: maxclients takes a whole number from 1 to 1073741824, such as 10000; got \"many\""},
		{"maxclients: 5\n---\nmaxclients: 6\n", "F:2: more than one document; remove this '---' and all below"},
		{"data-recover: true\n", "--fsync-interval, --fsync-timeout, --unready-on-disk-fault and --data-recover require --data-dir"},
		{"fsync-timeout: 2s\n", "--fsync-interval, --fsync-timeout, --unready-on-disk-fault and --data-recover require --data-dir"},
		{"data-dir: /nonexistent\nfsync-timeout: 2s\n", "--fsync-timeout requires --fsync-interval=0, got 1s"},
		{"fsync-timeout: 0\n", `F:1: fsync-timeout takes a time from 10ms to 1h, such as 5s, or seconds, such as 5; got "0"`},
		{"fsync-timeout: no\n", `F:1: fsync-timeout takes a time from 10ms to 1h, such as 5s, or seconds, such as 5; got "no"`},
		{"fsync-timeout: 2h\n", `F:1: fsync-timeout takes a time from 10ms to 1h, such as 5s, or seconds, such as 5; got "2h"`},
		{"limits-file: /nonexistent\naclfile: /nonexistent\nrequirepass-file: /nonexistent\n", "cannot read --requirepass-file /nonexistent: no such file or directory\n" +
			"--limits-file: cannot read /nonexistent: no such file or directory\n--aclfile: Error loading ACLs, opening file '/nonexistent': no such file or directory"},
		{"maxclients: 5\nstore: redis://a\ndatabases: 3\n", "F:3: databases cannot be used with this --store: its URL names the only database"},
		{"store: redis://:p@a,b\n", "--store: servers: the store's URL: it has several hosts"},
	} {
		path := harness.WriteFile(t, tt.text)
		code, out, errOut := harness.Call(t, nil, "config", "check", "--config", path)
		got := strings.ReplaceAll(strings.TrimSuffix(out, "\n"), path, "F")
		if wantCode := min(1, len(tt.want)-len("ok")); got != tt.want && !strings.HasPrefix(got, tt.want+" ") && !strings.HasPrefix(got, tt.want+",") || code != wantCode || code == 0 && errOut != "" {
			t.Errorf("%q: got %d,\n%s\n%swant\n%s", tt.text, code, got, errOut, tt.want)
		}
		if tt.want == "ok" {
			continue
		}
		first, _, more := strings.Cut(strings.ReplaceAll(tt.want, "F:", path+":"), "\n")
		if code, _, errOut := harness.Call(t, nil, "--config", path, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"); code == 0 || !strings.HasPrefix(errOut, "cellserver: "+first) && !more || strings.Count(errOut, "\n") != 1 {
			t.Errorf("the server started with %q: %d, %s", tt.text, code, errOut)
		}
	}
}

func TestConfigFileWithAPasswordForAll(t *testing.T) {
	t.Parallel()
	path := harness.WriteFile(t, "requirepass: s3cret\n")
	if code, _, errOut := harness.Call(t, nil, "config", "check", "--config", path); code != 0 || errOut != "" {
		t.Errorf("a private file: %d, %q", code, errOut)
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // that is what is warned of
		t.Fatal(err)
	}
	if code, _, errOut := harness.Call(t, nil, "config", "check", "--config", path); code != 0 || !strings.Contains(errOut, "every user of this machine can read the password") || strings.Contains(errOut, "s3cret") {
		t.Errorf("a file that all can read: %d, %q", code, errOut)
	}
}
