package wire

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
)

func TestUsersOfAFile(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, harness.OperatorsUsers)
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--aclfile", users)
		const funnel, denied = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2000000\r\n", "-NOPERM this user has no permissions to "
		for _, tt := range []struct{ login, send, want string }{
			{"", "CL.THROTTLE limits:a 15 30 60000000\r\n", noAuth},
			{"", "HELLO 3\r\n", "-NOAUTH HELLO must be called with the client already authenticated"},
			{"AUTH app s3cret\r\n", "CL.THROTTLE limits:a 15 30 60000000\r\n", funnel},
			{"AUTH app s3cret\r\n", "SELECT 3\r\nCL.THROTTLE limits:a 15 30 60000000\r\n", "+OK\r\n" + funnel},
			{"AUTH app s3cret\r\n", "CL.THROTTLE other 15 30 60000000\r\n", denied + "access one of the keys used as arguments\r\n"},
			{"AUTH app s3cret\r\n", "DEL limits:a\r\n", denied + "run the 'del' command\r\n"},
			{"AUTH app s3cret\r\n", "CONFIG GET requirepass\r\n", denied + "run the 'config|get' command\r\n"},
			{"AUTH app s3cret\r\n", "MULTI\r\nCL.THROTTLE other 15 30 60000000\r\nEXEC\r\n", "+OK\r\n" + denied + "access one of the keys used as arguments\r\n-EXECABORT "},
			{"AUTH app s3cret\r\n", "EVAL \"return redis.call('cl.throttle', KEYS[1], 15, 30, 60000000)\" 1 other\r\n", denied + "access one of the keys"},
			{"AUTH app s3cret\r\n", "EVAL \"return redis.call('del', KEYS[1])\" 1 limits:a\r\n", "-ERR The user executing the script can't run this command or subcommand script: "},
			{"AUTH exporter exp\r\n", "CONFIG GET databases\r\n", "*2\r\n$9\r\ndatabases\r\n$2\r\n16\r\n"},
			{"AUTH exporter exp\r\n", "CONFIG SET timeout 1\r\n", denied + "run the 'config|set' command\r\n"},
			{"AUTH exporter exp\r\n", "CL.THROTTLE limits:a 15 30 60000000\r\n", denied + "run the 'cl.throttle' command\r\n"},
			{"HELLO 2 AUTH exporter exp\r\n", "ACL WHOAMI\r\n", "$8\r\nexporter\r\n"},
			{"HELLO 3 AUTH admin root\r\n", "ACL WHOAMI\r\nCONFIG GET databases\r\nDBSIZE\r\n", "$5\r\nadmin\r\n%1\r\n$9\r\ndatabases\r\n$2\r\n16\r\n:1\r\n"},
		} {
			nc := p.Dial(t)
			if tt.login != "" {
				harness.SayTo(t, nc, tt.login, "\r\n")
			}
			harness.Exchange(t, nc, tt.send, tt.want)
		}
	})
}

// TestUsersAreReloaded: SIGHUP and ACL LOAD read the file; a bad file gives one line and no change.
func TestUsersAreReloaded(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, harness.OperatorsUsers)
	p := harness.StartServer(t, "--aclfile", users)
	admin := p.Dial(t)
	harness.Exchange(t, admin, "AUTH admin root\r\n", "+OK\r\n")
	app := p.Dial(t)
	harness.Exchange(t, app, "AUTH app s3cret\r\n", "+OK\r\n")
	certtest.Write(t, users, []byte(harness.OperatorsUsers+"user late on nopass ~* +@nonsense\nuse\n"))
	complaint := users + ":6: Error in applying operation '+@nonsense': Unknown command or category name in ACL. " +
		users + ":7 should start with user keyword followed by the username. " +
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	harness.Exchange(t, admin, "ACL LOAD\r\n", "-ERR "+complaint+"\r\n")
	p.Reload(t, complaint)
	harness.Exchange(t, admin, "ACL USERS\r\n", "*4\r\n$5\r\nadmin\r\n$3\r\napp\r\n$7\r\ndefault\r\n$8\r\nexporter\r\n")
	harness.Exchange(t, app, "PING\r\n", "+PONG\r\n")
	if code, _, errOut := harness.Call(t, nil, "--addr", "127.0.0.1:0", "--metrics-addr", "", "--aclfile", users); code != 1 || errOut != "cellserver: --aclfile: "+complaint+"\n" {
		t.Errorf("a start with it: got %d, %q", code, errOut)
	}

	certtest.Write(t, users, []byte(strings.ReplaceAll(harness.OperatorsUsers, "+ping +multi", "+multi")))
	p.Reload(t, "users read")
	if rest, err := io.ReadAll(app); len(rest) > 0 {
		t.Errorf("the connection of a user with other rules got %q, %v; want its end", rest, err)
	}
	again := p.Dial(t)
	harness.Exchange(t, again, "AUTH app s3cret\r\nPING\r\n", "+OK\r\n-NOPERM this user has no permissions to run the 'ping' command\r\n")
	certtest.Write(t, users, []byte("user admin on >root ~* &* +@all\nuser default off\n"))
	harness.Exchange(t, admin, "ACL LOAD\r\nACL USERS\r\n", "+OK\r\n*2\r\n$5\r\nadmin\r\n$7\r\ndefault\r\n")
	harness.Exchange(t, p.Dial(t), "AUTH app s3cret\r\n", "-WRONGPASS invalid username-password pair or user is disabled.\r\n")
}

// TestReloadsDoNotOpenTheServer: an empty file, or one without its default user, admits nobody; an explicit
// one does, with a warning.
func TestReloadsDoNotOpenTheServer(t *testing.T) {
	t.Parallel()
	users := harness.WriteFile(t, harness.OperatorsUsers)
	p := harness.StartServer(t, "--aclfile", users)
	admin := p.Dial(t)
	harness.Exchange(t, admin, "AUTH admin root\r\n", "+OK\r\n")
	for text, complaint := range map[string]string{
		"":                                  users + " has no users, and would remove the present ones: ",
		"user admin on >root ~* &* +@all\n": users + " has no user default, as whom clients could then do everything without a password: write 'user default off' or",
		harness.OperatorsUsers[:len("user default off\nuser app on >s3c")]: users + " has lost its final newline, so it may be incompletely written",
	} {
		certtest.Write(t, users, []byte(text))
		if got := harness.Reply(t, admin, "ACL LOAD"); !strings.HasPrefix(got, "-ERR "+complaint) {
			t.Errorf("%q: ACL LOAD got %q", text, got)
		}
		p.Signal(t, syscall.SIGHUP)
		p.Logged(t, complaint)
		harness.Exchange(t, p.Dial(t), "PING\r\n", noAuth)
		harness.Exchange(t, admin, "ACL USERS\r\n", "*4\r\n$5\r\nadmin\r\n$3\r\napp\r\n$7\r\ndefault\r\n$8\r\nexporter\r\n")
	}
	const warning = "with this ACL file clients require no password"
	if log := p.Log.String(); strings.Contains(log, warning) || strings.Count(log, "the users stay as they were") != 3 {
		t.Errorf("logged %s", log)
	}
	certtest.Write(t, users, []byte("user default on nopass ~* &* +@all\nuser app on >other\nuser new off\nuser admin on >root ~* &* +@all\n"))
	harness.Exchange(t, admin, "ACL LOAD\r\n", "+OK\r\n")
	harness.Exchange(t, p.Dial(t), "PING\r\n", "+PONG\r\n")
	for _, want := range []string{warning, `"added":"new","removed":"exporter","changed":"app default"`} {
		if strings.Contains(p.Logged(t, want), "root") {
			t.Error("a password is in the log")
		}
	}
}

func TestCertificateIsAUser(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	p := harness.StartServer(t, append(files.Flags(), "--tls-client-ca", files.ClientCA, "--tls-auth-clients", "optional",
		"--aclfile", harness.WriteFile(t, harness.OperatorsUsers+"user gone off >x ~* +@all\n"))...)
	for name, want := range map[string]string{
		"":         noAuth,
		"admin":    "$5\r\nadmin\r\n",
		"exporter": "$8\r\nexporter\r\n",
		"gone":     noAuth,
		"nobody":   noAuth,
		"default":  noAuth,
		"ADMIN":    noAuth,
	} {
		config := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
		if name != "" {
			config.Certificates = []tls.Certificate{ca.Pair(t, name)}
		}
		nc := tls.Client(harness.DialTCP(t, p.TLSAddr), config)
		harness.Exchange(t, nc, "ACL WHOAMI\r\n", want)
		harness.Exchange(t, nc, "AUTH admin root\r\nACL WHOAMI\r\n", "+OK\r\n$5\r\nadmin\r\n")
	}
}

// TestFailedLogins: failed log-ins are counted, logged and slowed, and do not slow other clients. A test of
// sessions covers the delays.
func TestFailedLogins(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		const failures, many, wrong = 7, 5000, "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
		p, began := startServer(t, "--requirepass", "secret"), time.Now()
		other := p.Dial(t)
		harness.Exchange(t, other, "AUTH secret\r\n", "+OK\r\n")
		guesser := p.Dial(t)
		harness.Send(t, guesser, strings.Repeat("AUTH guess\r\n", failures-1)+"HELLO 3 AUTH default guess\r\n")
		harness.Exchange(t, guesser, "", strings.Repeat(wrong, failures))
		if n := p.Metric(t, "cellserver_auth_failures_total"); n != failures {
			t.Errorf("%v failures in /metrics, want %d", n, failures)
		}
		info := harness.Reply(t, other, "INFO stats")
		if !strings.Contains(info, fmt.Sprintf("acl_access_denied_auth:%d ", failures)) {
			t.Errorf("INFO has %s", info)
		}
		entries := harness.Reply(t, other, "ACL LOG")
		for command, count := range map[string]int{"$4 AUTH": failures - 1, "$5 HELLO": 1} {
			if !strings.Contains(entries, fmt.Sprintf("count :%d $6 reason $4 auth $7 context $8 toplevel $6 object %s $8 username $7 default ", count, command)) {
				t.Errorf("ACL LOG has %q, without %s", entries, command)
			}
		}
		const line = "wrong user name or password"
		if log := p.Logged(t, line); strings.Count(log, line) > 1+int(time.Since(began)/time.Minute) || strings.Contains(log, "guess") {
			t.Errorf("want the failures logged once a minute, and never the password: %s", log)
		}
		harness.Exchange(t, guesser, "AUTH secret\r\nPING\r\n", "+OK\r\n+PONG\r\n")

		again := p.Dial(t)
		harness.Send(t, again, strings.Repeat("AUTH guess\r\n", many)) // for two hours
		harness.Exchange(t, other, "PING\r\n", "+PONG\r\n")
		if p.Metric(t, "cellserver_auth_failures_total") >= failures+many {
			t.Error("a client's PING waited for all failures of another")
		}
		_ = again.Close()
	})
}
