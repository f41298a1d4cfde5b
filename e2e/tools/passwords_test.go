package tools

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/e2e/harness"
)

// TestPasswords: every command that asks a server signs in as the user of its URL, by a file or by
// redis-cli's variable.
func TestPasswords(t *testing.T) {
	t.Parallel()
	const password = "s3cret@/:%?#"
	limits := harness.WriteFile(t, ofAll)
	from := harness.StartServer(t, "--io-threads", "1", "--limits-file", limits, "--aclfile", harness.WriteFile(t,
		"user default on >other ~* +@all\nuser operator on >"+password+" ~* +@all\n"))
	into, open := harness.StartServer(t, "--requirepass", "other"), harness.StartServer(t, "--io-threads", "1")
	harness.Exchange(t, from.Dial(t), "AUTH other\r\nCL.THROTTLE k 4 5 3600 5\r\n", "+OK\r\n*5\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:3600\r\n")
	file, other := harness.WriteFile(t, password+"\n"), harness.WriteFile(t, "other\n")
	at, dump := "redis://operator@"+from.Addr, filepath.Join(t.TempDir(), "keys.dump")
	for _, tt := range []struct {
		command []string
		flag    string
	}{
		{[]string{"limits", "diff", limits, "--addr", at}, "--password-file"},
		{[]string{"dump", "--from", at, dump}, "--password-file"},
		{[]string{"load", "--into", at, dump}, "--password-file"},
		{[]string{"top", "--rounds", "1", "--interval", "0.1", "--addr", at}, "--password-file"},
		{[]string{"import", "--into", "redis://" + into.Addr, "--into-password-file", other, at}, "--from-password-file"},
	} {
		for way, given := range map[string][2][]string{
			"file":                  {nil, {tt.flag, file}},
			"variable":              {{"REDISCLI_AUTH=" + password}, nil},
			"file before variable":  {{"REDISCLI_AUTH=wrong"}, {tt.flag, file}},
			"variable for the flag": {{"CELLSERVER_" + strings.ToUpper(strings.ReplaceAll(tt.flag[2:], "-", "_")) + "=" + file}, nil},
		} {
			if code, out, errOut := harness.Call(t, given[0], append(tt.command, given[1]...)...); code != 0 {
				t.Errorf("%q by the %s: got %d, %q, %q", tt.command, way, code, out, errOut)
			}
		}
		code, out, errOut := harness.Call(t, []string{"REDISCLI_AUTH=" + password + "x"}, tt.command...)
		if code != 1 || strings.Contains(out+errOut, "s3cret") || !strings.Contains(errOut, "WRONGPASS") || !strings.HasSuffix(errOut, "the password of "+tt.flag+" or REDISCLI_AUTH\n") {
			t.Errorf("%q with a wrong password: got %d, %q, %q", tt.command, code, out, errOut)
		}
	}
	for _, tt := range []struct {
		addr, env string
		args      []string
	}{
		{from.Addr, "A=", []string{"--from", at, "--password-file", file}},
		{from.Addr, "REDISCLI_AUTH=" + password, []string{"--from", from.Addr, "--user", "operator"}},
		{open.Addr, "REDISCLI_AUTH=" + password, []string{"--from", open.Addr}}, // which requires none
	} {
		cmd := harness.Command(t, append([]string{"shadow"}, tt.args...)...)
		cmd.Env = append(cmd.Env, tt.env)
		p := harness.Start(t, cmd)
		p.Eventually(t, "follow, or end", func() bool { return strings.Contains(p.Log.String(), "following ") || p.HasExited() })
		p.Stop(t, syscall.SIGINT)
		if said := p.Log.String(); !strings.HasPrefix(said, "shadow: following "+tt.addr+"\n") {
			t.Errorf("shadow %q, %s: got %q", tt.args, tt.env, said)
		}
	}
	// As in redis-cli, a needless password is no error.
	if code, out, errOut := harness.Call(t, []string{"REDISCLI_AUTH=" + password}, "load", "--into", "redis://"+open.Addr, dump); code != 0 || !strings.HasSuffix(out, "loaded      1\n") {
		t.Errorf("without a password: got %d, %q, %q", code, out, errOut)
	}
}

// TestPasswordMistakes: each is one line that says what to do, without the password.
func TestPasswordMistakes(t *testing.T) {
	t.Parallel()
	locked := harness.StartServer(t, "--requirepass", "s3cret")
	harness.Exchange(t, locked.Dial(t), "AUTH s3cret\r\nSET k 1\r\n", "+OK\r\n+OK\r\n")
	file, empty, missing := harness.WriteFile(t, "s3cret"), harness.WriteFile(t, "\n"), filepath.Join(t.TempDir(), "missing")
	variable := []string{"REDISCLI_AUTH=s3cret"}
	for _, tt := range []struct {
		env  []string
		args []string
		code int
		want string
	}{
		{nil, []string{"dump", "--from", "redis://:s3cret@" + locked.Addr, "--password-file", file, missing}, 2, "the URL of --from has a password, and --password-file names another; leave one of them out"},
		{nil, []string{"dump", "--from", url(locked), "--password-file", empty, missing}, 2, "--password-file " + empty + " is empty; write the password into it"},
		{nil, []string{"dump", "--from", url(locked), "--password-file", missing, missing}, 2, "cannot read --password-file " + missing + ": no such file or directory"},
		{nil, []string{"dump", "--from", url(locked), missing}, 1, "dump: " + locked.Addr + ": NOAUTH Authentication required; give its password by --password-file or REDISCLI_AUTH"},
		// No server learns another's password.
		{variable, []string{"import", "--into", url(locked), url(locked)}, 1, "import: " + locked.Addr + ": NOAUTH Authentication required; give its password by --into-password-file"},
		{nil, []string{"import", "--into", url(locked), "--from-password-file", file, "redis://:s3cret@" + locked.Addr}, 2, "the URL of --from has a password, and --from-password-file names another; leave one of them out"},
	} {
		code, out, errOut := harness.Call(t, tt.env, tt.args...)
		if code != tt.code || out != "" || errOut != "cellserver: "+tt.want+"\n" {
			t.Errorf("%q: got %d, %q, %q, want %q", tt.args, code, out, errOut, tt.want)
		}
	}
	// A password in the URL is before the variable, as in redis-cli.
	if code, _, errOut := harness.Call(t, []string{"REDISCLI_AUTH=wrong"}, "dump", "--from", "redis://:s3cret@"+locked.Addr, missing); code != 0 {
		t.Errorf("by the URL: got %d, %q", code, errOut)
	}
}
