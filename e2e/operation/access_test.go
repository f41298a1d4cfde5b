package operation

import (
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/resptest"
)

// TestProtectedMode connects from a non-loopback address, to every listener.
func TestProtectedMode(t *testing.T) {
	t.Parallel()
	host := harness.Outside(t)
	files, ca := harness.NewTLSFiles(t)
	listen := append(files.Flags(), "--addr", host+":0", "--tls-addr", host+":0")
	for _, tt := range []struct {
		args []string
		want string // prefix of the reply to PING
		log  string // warning in the log
	}{
		{nil, "-DENIED cellserver is running in protected mode because protected mode is enabled and no password is set for the default user.", "are refused"},
		{[]string{"--protected-mode", "yes"}, "-DENIED ", "are refused"},
		{[]string{"--protected-mode=no"}, "+PONG\r\n", "requires no password"},
		{[]string{"--requirepass", "secret"}, "-NOAUTH ", ""},
	} {
		harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
			p := startServer(t, slices.Concat(listen, tt.args)...)
			if p.TLS != nil {
				p.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
			}
			nc := p.Dial(t)
			_, _ = io.WriteString(nc, "PING\r\n")
			got := make([]byte, len(tt.want))
			if _, err := io.ReadFull(nc, got); err != nil || string(got) != tt.want {
				t.Errorf("%q: got %q, %v, want %q", tt.args, got, err, tt.want)
			}
			log := p.Logged(t, tt.log)
			for _, warning := range []string{"are refused", "requires no password"} {
				if warning != tt.log && strings.Contains(log, warning) {
					t.Errorf("%q: warned without reason: %s", tt.args, log)
				}
			}
			if denied := p.Metric(t, "cellserver_connections_refused_total"); (denied == 1) != strings.HasPrefix(tt.want, "-DENIED") {
				t.Errorf("%q: %v were denied", tt.args, denied)
			}
		})
	}
}

// TestSocketMode: the socket has the flag's permissions whatever the umask and a previous file.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o700, 0o777, 0o606} {
		path := filepath.Join(t.TempDir(), "s")
		args := []string{"--unixsocket", path, "--unixsocketperm", strconv.FormatInt(int64(mode), 8)}
		p := harness.StartServer(t, args...)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("got %v, %v, want %v", info.Mode(), err, mode)
		}
		nc := harness.DialUnix(t, path)
		harness.Exchange(t, nc, "CLIENT INFO\r\n", "$")
		nc.Close()
		p.Stop(t, syscall.SIGKILL)
		p = harness.StartServer(t, args...)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("after a kill: got %v, %v, want %v", info.Mode(), err, mode)
		}
		if code, _, errOut := harness.Call(t, nil, append(args, "--addr", "", "--metrics-addr", "")...); code != 1 || !strings.Contains(errOut, "address already in use") {
			t.Errorf("a second server: got %d, %q", code, errOut)
		}
		p.Stop(t, syscall.SIGTERM)
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the socket was left: %v", err)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	for contents, password := range map[string]string{"secret": "secret", "secret\n": "secret", "secret\r\n": "secret", "two words\n": "two words", "a\n\n": "a\n"} {
		certtest.Write(t, path, []byte(contents))
		p := harness.StartServer(t, "--requirepass-file", path)
		nc := p.Dial(t)
		harness.Exchange(t, nc, "PING\r\n", "-NOAUTH Authentication required.\r\n")
		harness.Exchange(t, nc, string(resptest.Append(nil, "AUTH", password)), "+OK\r\n")
		if strings.Contains(p.Log.String(), "can read this secret") {
			t.Errorf("warned without reason: %s", p.Log.String())
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if p := harness.StartServer(t, "--requirepass-file", path); !strings.Contains(p.Log.String(), "can read this secret") {
		t.Errorf("no warning: %s", p.Log.String())
	}
}

// TestIgnoredPassword: a password beside an aclfile's user default has no effect, as in Redis, and a warning
// says so.
func TestIgnoredPassword(t *testing.T) {
	t.Parallel()
	const warning = "the password of requirepass is ignored"
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	users := harness.WriteFile(t, "user default on >own ~* &* +@all\n")
	password := harness.WriteFile(t, "ignored")
	args := []string{"--requirepass-file", password, "--aclfile", users}
	if code, out, errOut := harness.Call(t, nil, append([]string{"config", "check"}, args...)...); code != 0 || out != "ok\n" || strings.Count(errOut, warning) != 1 {
		t.Errorf("config check: %d, %q, %q", code, out, errOut)
	}
	p := harness.StartServer(t, args...)
	if !strings.Contains(p.Log.String(), warning) {
		t.Errorf("no warning at the start: %s", p.Log.String())
	}
	harness.Exchange(t, p.Dial(t), "AUTH ignored\r\nAUTH own\r\n", wrong+"+OK\r\n")
	p.Rewrite(t, password, "changed", warning)
	harness.Exchange(t, p.Dial(t), "AUTH changed\r\nAUTH own\r\n", wrong+"+OK\r\n")

	// Nor does it have one while the changed file cannot be used.
	if err := os.WriteFile(password, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Rewrite(t, users, "user default nonsense\n", "cannot use the ACL file")
	harness.Exchange(t, p.Dial(t), "AUTH another\r\nAUTH own\r\n", wrong+"+OK\r\n")
	if log := p.Log.String(); strings.Contains(log, `"settings":"requirepass"`) {
		t.Errorf("the log calls the password changed: %s", log)
	}

	// A file without the default user leaves the password in force.
	args[3] = harness.WriteFile(t, "user app on >own ~* +@all\n")
	p = harness.StartServer(t, args...)
	harness.Exchange(t, p.Dial(t), "AUTH another\r\n", "+OK\r\n")
	p.Rewrite(t, password, "third", `"settings":"requirepass"`)
	harness.Exchange(t, p.Dial(t), "AUTH third\r\n", "+OK\r\n")
	if _, _, errOut := harness.Call(t, nil, append([]string{"config", "check"}, args...)...); errOut != "" || strings.Contains(p.Log.String(), warning) {
		t.Errorf("warned without reason: %s%s", errOut, p.Log.String())
	}
}

// TestTokensWithoutUsers: the log and config check name a user whose token is refused.
func TestTokensWithoutUsers(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, "user default off\nuser app on nopass ~* +@all\nuser old off\n")
	tokens := harness.WriteFile(t, "0123456789abcdef0 app\n0123456789abcdef1 old\n0123456789abcdef2 gone\n")
	args := []string{"--http-addr", "127.0.0.1:0", "--http-tokens-file", tokens, "--aclfile", users}
	code, out, errOut := harness.Call(t, nil, append([]string{"config", "check"}, args...)...)
	if code != 0 || out != "ok\n" || strings.Count(errOut, "\n") != 2 || !strings.Contains(errOut, "user=gone") || !strings.Contains(errOut, "user=old") {
		t.Errorf("config check: %d, %q, %q", code, out, errOut)
	}
	p := harness.StartServer(t, args...)
	for _, user := range []string{"gone", "old"} {
		if strings.Count(p.Log.String(), `does not exist or is off","user":"`+user+`"`) != 1 {
			t.Errorf("no warning of %s at the start: %s", user, p.Log.String())
		}
	}
	p.Rewrite(t, tokens, "0123456789abcdef0 app\n0123456789abcdef3 later\n", `does not exist or is off","user":"later"`)
	if log := p.Log.String(); strings.Contains(log, `"user":"app"`) {
		t.Errorf("warned without reason: %s", log)
	}
}
