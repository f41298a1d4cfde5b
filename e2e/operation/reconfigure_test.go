package main

import (
	"os"
	"strings"
	"testing"
)

func TestSIGHUPReloadsTheConfigFile(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, "maxclients: 100\ntimeout: 60\ndatabases: 8\n")
	p := startServer(t, "--config", path, "--input-timeout", "20s")
	p.get(t, "maxclients", "100")

	// What can change does; what cannot is named; what CONFIG SET has set stays where the file did not change.
	exchange(t, p.dial(t), "CONFIG SET max-key-bytes 5\r\nCONFIG SET output-timeout 7 maxmemory 300mb\r\n",
		"-ERR CONFIG SET failed (possibly related to argument 'max-key-bytes') - can't set immutable config\r\n+OK\r\n")
	p.rewrite(t, path, "maxclients: 200\ntimeout: 60\ndatabases: 9\naddr: 127.0.0.1:1\ninput-timeout: 99\nslowlog-max-len: 5\nmaxmemory-policy: noeviction\n"+
		"maxclients-per-address: 150\nlatency-monitor-threshold: 3\nprotected-mode: no\nhandshake-timeout: 3\n",
		`"settings":"handshake-timeout latency-monitor-threshold maxclients maxclients-per-address maxmemory-policy protected-mode slowlog-max-len"`)
	for name, want := range map[string]string{
		"maxclients": "200", "timeout": "60", "databases": "8", "input-timeout": "20", "output-timeout": "7", "slowlog-max-len": "5",
		"maxmemory": "314572800", "maxmemory-policy": "noeviction", "maxclients-per-address": "150", "latency-monitor-threshold": "3",
		"protected-mode": "no", "handshake-timeout": "3",
	} {
		p.get(t, name, want)
	}
	if log := p.Log.String(); strings.Count(log, `require a restart, and stay as they were until then","settings":"databases"`) != 1 {
		t.Errorf("the log does not name what requires a restart: %s", log)
	}

	exchange(t, p.dial(t), "CONFIG REWRITE\r\n", "-ERR Rewriting config file: the server never writes it; change it, and send SIGHUP\r\n")

	// A bad file changes nothing.
	p.rewrite(t, path, "maxclients: 300\nno-such: 5\n", "cannot use the changed settings; all stay as they were")
	if log := p.Log.String(); !strings.Contains(log, path+`:2: \"no-such\" is no setting`) {
		t.Errorf("the log does not say what is wrong: %s", log)
	}
	p.get(t, "maxclients", "200")

	// Nor does one that is gone, or that would be waited for.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.reload(t, `"--config: cannot read `+path+`: no such file or directory"`)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	p.reload(t, `"--config: `+path+` is no regular file, and cannot be read again"`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.get(t, "maxclients", "200")

	// Nor does one whose memory for clients is more than the maximum that CONFIG SET has set.
	p.rewrite(t, path, "maxmemory-clients: 800mb\n", "cannot use the changed settings; all stay as they were")
	p.get(t, "maxmemory-clients", "25%")

	// What is gone from the file has its default again.
	p.rewrite(t, path, "log-level: debug\ndatabases: 8\n", `"settings":"`)
	p.get(t, "maxclients", "10000")
	p.get(t, "timeout", "0")
	p.get(t, "output-timeout", "7")
}

func TestSIGHUPReloadsPasswords(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, "one\n")
	p := startServer(t, "--requirepass-file", file)
	const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	exchange(t, p.dial(t), "AUTH one\r\n", "+OK\r\n")
	p.rewrite(t, file, "two\n", `"settings":"requirepass"`)
	exchange(t, p.dial(t), "AUTH one\r\nAUTH two\r\n", wrong+"+OK\r\n")
	p.rewrite(t, file, "", "cannot use the changed settings; all stay as they were") // nobody is let in by an empty file
	exchange(t, p.dial(t), "AUTH two\r\n", "+OK\r\n")
	if log := p.Log.String(); strings.Contains(log, "two") {
		t.Errorf("the log has the password: %s", log)
	}
}

// TestSIGHUPReloadsTheStoresPassword: new connections log in with it.
func TestSIGHUPReloadsTheStoresPassword(t *testing.T) {
	t.Parallel()
	redis := startRedis(t, "--requirepass", "one")
	file := writeConfig(t, "one")
	p := startServer(t, "--store", "redis://"+redis.addr, "--store-password-file", file, "--store-timeout", "10s")
	const call = "CL.THROTTLE k 100 1 3600 0\r\n"
	const answer = "*5\r\n:0\r\n:101\r\n:101\r\n:-1\r\n:0\r\n"
	exchange(t, p.dial(t), call, answer)
	exchange(t, redis.dial(t), "AUTH one\r\nCONFIG SET requirepass two\r\n", "+OK\r\n+OK\r\n")
	p.rewrite(t, file, "two", `"settings":"store-password-file"`)
	exchange(t, p.dial(t), call, answer) // by a connection that is logged in already
	exchange(t, redis.dial(t), "AUTH two\r\nCLIENT KILL TYPE normal SKIPME yes\r\n", "+OK\r\n:")
	exchange(t, p.dial(t), call, answer)
}
