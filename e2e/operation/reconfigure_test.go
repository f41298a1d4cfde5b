package operation

import (
	"os"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

func TestSIGHUPReloadsTheConfigFile(t *testing.T) {
	t.Parallel()
	path := harness.WriteFile(t, "maxclients: 100\ntimeout: 60\ndatabases: 8\n")
	p := harness.StartServer(t, "--config", path, "--input-timeout", "20s")
	p.Get(t, "maxclients", "100")

	// Changeable settings change, fixed ones are named, and CONFIG SET's stay where the file did not change.
	harness.Exchange(t, p.Dial(t), "CONFIG SET max-key-bytes 5\r\nCONFIG SET output-timeout 7 maxmemory 300mb\r\n",
		"-ERR CONFIG SET failed (possibly related to argument 'max-key-bytes') - can't set immutable config\r\n+OK\r\n")
	p.Rewrite(t, path, "maxclients: 200\ntimeout: 60\ndatabases: 9\naddr: 127.0.0.1:1\ninput-timeout: 99\nslowlog-max-len: 5\nmaxmemory-policy: noeviction\n"+
		"maxclients-per-address: 150\nlatency-monitor-threshold: 3\nprotected-mode: no\n",
		`"settings":"latency-monitor-threshold maxclients maxclients-per-address maxmemory-policy protected-mode slowlog-max-len"`)
	for name, want := range map[string]string{
		"maxclients": "200", "timeout": "60", "databases": "8", "input-timeout": "20", "output-timeout": "7", "slowlog-max-len": "5",
		"maxmemory": "314572800", "maxmemory-policy": "noeviction", "maxclients-per-address": "150", "latency-monitor-threshold": "3",
		"protected-mode": "no",
	} {
		p.Get(t, name, want)
	}
	if log := p.Log.String(); strings.Count(log, `require a restart","settings":"databases"`) != 1 {
		t.Errorf("the log does not name what requires a restart: %s", log)
	}

	harness.Exchange(t, p.Dial(t), "CONFIG REWRITE\r\n", "+OK\r\n") // which leaves the file as it is

	// A bad file changes nothing.
	p.Rewrite(t, path, "maxclients: 300\nno-such: 5\n", "cannot use the changed settings; all stay as they were")
	if log := p.Log.String(); !strings.Contains(log, path+`:2: unknown setting \"no-such\"`) {
		t.Errorf("the log does not say what is wrong: %s", log)
	}
	p.Get(t, "maxclients", "200")

	// Nor does a missing one, or a pipe.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.Reload(t, `"--config: cannot read `+path+`: no such file or directory"`)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Reload(t, `"--config: `+path+` is not a regular file and cannot be read again"`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.Get(t, "maxclients", "200")

	// Nor does one whose memory for clients exceeds the maximum of CONFIG SET.
	p.Rewrite(t, path, "maxmemory-clients: 800mb\n", "cannot use the changed settings; all stay as they were")
	p.Get(t, "maxmemory-clients", "25%")

	// A setting removed from the file gets its default back.
	p.Rewrite(t, path, "log-level: debug\ndatabases: 8\n", `"settings":"`)
	p.Get(t, "maxclients", "10000")
	p.Get(t, "timeout", "0")
	p.Get(t, "output-timeout", "7")
}

func TestSIGHUPReloadsPasswords(t *testing.T) {
	t.Parallel()
	file := harness.WriteFile(t, "one\n")
	p := harness.StartServer(t, "--requirepass-file", file)
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	harness.Exchange(t, p.Dial(t), "AUTH one\r\n", "+OK\r\n")
	p.Rewrite(t, file, "two\n", `"settings":"requirepass"`)
	harness.Exchange(t, p.Dial(t), "AUTH one\r\nAUTH two\r\n", wrong+"+OK\r\n")
	// an empty file admits nobody
	p.Rewrite(t, file, "", "cannot use the changed settings; all stay as they were")
	harness.Exchange(t, p.Dial(t), "AUTH two\r\n", "+OK\r\n")
	if log := p.Log.String(); strings.Contains(log, "two") {
		t.Errorf("the log has the password: %s", log)
	}
}

func TestSIGHUPReloadsTheStoresPassword(t *testing.T) {
	t.Parallel()
	redis := harness.StartRedis(t, "--requirepass", "one")
	file := harness.WriteFile(t, "one")
	p := harness.StartServer(t, "--store", "redis://"+redis.Addr, "--store-password-file", file, "--store-timeout", "10s")
	const call = "CL.THROTTLE k 100 1 3600 0\r\n"
	const answer = "*5\r\n:0\r\n:101\r\n:101\r\n:-1\r\n:0\r\n"
	harness.Exchange(t, p.Dial(t), call, answer)
	harness.Exchange(t, redis.Dial(t), "AUTH one\r\nCONFIG SET requirepass two\r\n", "+OK\r\n+OK\r\n")
	p.Rewrite(t, file, "two", `"settings":"store-password-file"`)
	harness.Exchange(t, p.Dial(t), call, answer) // on a connection that is logged in already
	harness.Exchange(t, redis.Dial(t), "AUTH two\r\nCLIENT KILL TYPE normal SKIPME yes\r\n", "+OK\r\n:")
	harness.Exchange(t, p.Dial(t), call, answer)
}
