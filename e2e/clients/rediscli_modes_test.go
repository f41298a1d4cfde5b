package clients

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/processtest"
)

// TestRedisCLIModes: redis-cli's modes for operators end and show the server's state.
func TestRedisCLIModes(t *testing.T) {
	t.Parallel()
	p := harness.StartServer(t)
	nc := p.Dial(t)
	for i := range 40 {
		harness.Exchange(t, nc, fmt.Sprintf("CL.THROTTLE user:%d 15 1 3600\r\n", i), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:3600\r\n")
	}
	long := strings.Repeat("k", 300)
	harness.Exchange(t, nc, "CL.THROTTLE "+long+" 15 1 3600\r\n", "*5\r\n:0\r\n")
	harness.Exchange(t, p.Dial(t), "SELECT 3\r\nCL.THROTTLE user:elsewhere 15 1 3600\r\n", "+OK\r\n*5\r\n:0\r\n")
	for _, tt := range []struct {
		args string
		want []string // parts of the output
	}{
		{"--bigkeys", []string{"Sampled 41 keys in the keyspace!", "41 strings with 0 bytes (100.00% of keys"}},
		{"-3 --bigkeys", []string{"Sampled 41 keys in the keyspace!"}},
		{"--memkeys", []string{"Sampled 41 keys in the keyspace!", "Biggest string found", "(100.00% of keys, avg size"}},
		{"--scan --pattern user:1?", []string{"user:10\n", "user:19\n"}},
		{"--scan --pattern user:[12]", []string{"user:1\n", "user:2\n"}},
		{"-n 3 --scan", []string{"user:elsewhere\n"}},
		{"--latency -i 0.2", []string{"."}}, // min max avg samples
		{"-r 3 -i 0.01 ping", []string{"PONG\nPONG\nPONG\n"}},
		{"--csv cl.throttle csv 15 1 3600", []string{"0,16,15,-1,3600\n"}},
		{"info keyspace", []string{"db0:keys=4", "db3:keys=1,"}},
	} {
		out, err := harness.RedisTool(t, p, "redis-cli", strings.Fields(tt.args)...).CombinedOutput()
		if err != nil {
			t.Errorf("redis-cli %s: %v", tt.args, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("redis-cli %s printed %q, without %q", tt.args, out, want)
			}
		}
		if strings.Contains(tt.args, "--scan") && strings.Count(string(out), "\n") > 10 {
			t.Errorf("redis-cli %s printed %q, too much", tt.args, out)
		}
	}
	// until interrupted
	stat := startTerminal(t, harness.RedisTool(t, p, "redis-cli", "--stat", "-i", "0.05"))
	stat.expect(t, "keys")
	stat.expect(t, "\n43 ") // in all databases
	stat.expect(t, "\n43 ")
	history := startTerminal(t, harness.RedisTool(t, p, "redis-cli", "--latency-history", "-i", "0.2"))
	history.expect(t, "seconds range")
}

func TestRedisCLIByURL(t *testing.T) {
	t.Parallel()
	files, ca := harness.NewTLSFiles(t)
	cert, key := ca.Issue(t, "admin")
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	certtest.Write(t, certFile, cert)
	certtest.Write(t, keyFile, key)
	p := harness.StartServer(t, append(files.Flags(), "--tls-client-ca", files.ClientCA, "--tls-auth-clients", "optional",
		"--aclfile", harness.WriteFile(t, harness.OperatorsUsers))...)
	_, tlsPort, _ := net.SplitHostPort(p.TLSAddr)
	plain, over := "@127.0.0.1:"+p.Port(), "@localhost:"+tlsPort
	const refused = "AUTH failed: WRONGPASS invalid username-password pair or user is disabled.\nNOAUTH Authentication required.\n\n"
	for _, tt := range []struct{ args, want string }{
		{"-u redis://app:s3cret" + plain + "/3 cl.throttle limits:a 15 30 60", "0\n16\n15\n-1\n2\n"},
		{"-u redis://app:s3cret" + plain + "/0 cl.throttle limits:a 15 30 60", "0\n16\n15\n-1\n2\n"},
		{"-u redis://admin:root" + plain + "/3 exists limits:a", "1\n"},
		{"-u redis://admin:wrong" + plain + "/3 exists limits:a", refused},
		{"-u redis://admin:wrong" + plain + " exists limits:a", refused},
		{"-u rediss://admin:root" + over + "/3 --cacert " + files.ClientCA + " exists limits:a", "1\n"},
		{"-u rediss://localhost:" + tlsPort + " --cacert " + files.ClientCA + " ping", "NOAUTH Authentication required.\n\n"},
		{"-u rediss://localhost:" + tlsPort + " --cacert " + files.ClientCA + " --cert " + certFile + " --key " + keyFile + " acl whoami", "admin\n"},
		{"-u rediss://app:s3cret" + over + " --cacert " + files.ClientCA + " --cert " + certFile + " --key " + keyFile + " ping", "PONG\n"},
		{"-p " + p.Port() + " --user app --pass s3cret ping", "PONG\n"},
	} {
		cmd := processtest.Command(t, processtest.Need(t, "redis-cli"), append([]string{"--no-auth-warning"}, strings.Fields(tt.args)...)...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		if out, _ := cmd.CombinedOutput(); string(out) != tt.want {
			t.Errorf("redis-cli %s printed %q, want %q", tt.args, out, tt.want)
		}
	}
	untrusted := processtest.Command(t, processtest.Need(t, "redis-cli"), "-u", "rediss://localhost:"+tlsPort, "ping")
	if out, err := untrusted.CombinedOutput(); err == nil || !strings.Contains(string(out), "certificate verify failed") {
		t.Errorf("without the authority redis-cli printed %q, %v", out, err)
	}
}
