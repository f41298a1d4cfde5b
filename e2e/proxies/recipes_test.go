package proxies

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellserver/internal/test/processtest"
)

// recipe is a proxy with its file in deploy/.
type recipe struct {
	program string
	start   func(t *testing.T, program string, s *stack, how mode)
	closed  int // the status while it fails closed
}

// mode is how a recipe's file is changed for a test.
type mode struct {
	closed  bool // fails closed
	patient bool // waits for a busy machine

	behind bool // another proxy, which tells the visitor's address in X-Forwarded-For

	other    string   // HTTP address of a pair's other server
	password string   // of cellserver
	edits    []string // of nginx's file: texts, each before what replaces it
	args     []string // of cellserver
	token    string   // of nginx; "" for none
	mistaken bool     // nginx lacks its file of passwords, and sends a Host that cellserver refuses
}

func recipes() []recipe {
	return []recipe{
		{"nginx", startNginx, http.StatusServiceUnavailable},
		{"haproxy", startHAProxy, http.StatusServiceUnavailable},
		{"caddy", startCaddy, 0},
	}
}

// knownKeys are the API keys that the proxies know, one as long as the files' commands make them.
func knownKeys() []string {
	return []string{"one", "two&denied=200", "6f1d2a9c0b7e4d5886a3c1e2f40596b7d8e9fa0b1c2d3e4f"}
}

// onEach runs a test with each recipe.
func onEach(t *testing.T, test func(t *testing.T, r recipe)) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts proxies")
	}
	for _, r := range recipes() {
		t.Run(r.program, func(t *testing.T) {
			t.Parallel()
			test(t, r)
		})
	}
}

// startProxy starts a proxy and waits until it listens.
func (s *stack) startProxy(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	cmd := processtest.Command(t, program, args...)
	cmd.Env = append(os.Environ(), env...)
	p := processtest.Start(t, cmd)
	s.proxy = p
	t.Cleanup(func() { p.Stop(t, syscall.SIGTERM) }) // without minding its exit code
	p.Eventually(t, "listen", func() bool {
		nc, err := net.Dial("tcp", s.front)
		if err != nil {
			return p.HasExited()
		}
		_ = nc.Close()
		return true
	})
	if p.HasExited() {
		t.Fatalf("%s does not run: %s", program, p.Log.String())
	}
}

// edit replaces texts of a recipe's file; each must be there.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Errorf("the file has no %q", pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }

func startNginx(t *testing.T, program string, s *stack, how mode) {
	t.Helper()
	dir, open := t.TempDir(), processtest.FreeAddr(t)
	text := read(t, "deploy/nginx/nginx.conf")
	if how.closed {
		text = edit(t, text, "        server 127.0.0.1:8079 backup;\n", "")
	}
	if how.patient {
		text = edit(t, text, "100ms", "1h")
	}
	if how.other != "" {
		text = edit(t, text, "# server 10.0.0.2:6381", "server "+how.other)
	}
	text = edit(t, text, "events {}\n\nhttp {\n", ownNginx(dir), "127.0.0.1:8000", s.site.Listener.Addr().String(), "127.0.0.1:8080", s.front,
		"server 127.0.0.1:6381", "server "+s.http.Addr, "127.0.0.1:8079", open)
	if how.behind {
		text = edit(t, text, "\nhttp {\n", "\nhttp {\nset_real_ip_from 127.0.0.1;\nreal_ip_header X-Forwarded-For;\n")
	}
	s.log = filepath.Join(dir, "access.log")
	text = edit(t, text, "/var/log/nginx/access.log", s.log)
	if how.token != "" {
		write(t, dir, "cellserver-token", "proxy_set_header X-Cellserver-Token "+how.token+";\n")
		text = edit(t, text, "# include cellserver-token;", "include cellserver-token;")
	}
	text = edit(t, text, how.edits...)
	var keys strings.Builder
	for _, key := range knownKeys() {
		keys.WriteString(key + " " + key + ";\n")
	}
	write(t, dir, "api-keys", keys.String())
	if how.mistaken {
		text = edit(t, text, "Host localhost", "Host site.example")
	} else {
		write(t, dir, "people", "laoqian:{PLAIN}secret\n")
	}
	s.startProxy(t, nil, program, "-e", "stderr", "-c", write(t, dir, "nginx.conf", text))
}

func startHAProxy(t *testing.T, program string, s *stack, how mode) {
	t.Helper()
	startHAProxyBut(t, program, s, how)
}

// startHAProxyBut replaces texts of the file, too.
func startHAProxyBut(t *testing.T, program string, s *stack, how mode, pairs ...string) {
	t.Helper()
	dir := t.TempDir()
	text := edit(t, read(t, "deploy/haproxy/haproxy.cfg"), "127.0.0.1:8000", s.site.Listener.Addr().String(), "127.0.0.1:8080", s.front,
		"lua-load-per-thread cellserver.lua", "lua-load-per-thread "+write(t, dir, "cellserver.lua", read(t, "deploy/haproxy/cellserver.lua")),
		"-f api-keys", "-f "+write(t, dir, "api-keys", strings.Join(knownKeys(), "\n")+"\n"))
	text = edit(t, text, pairs...)
	if how.behind {
		text = edit(t, text, " src,lua.", " req.hdr_ip(X-Forwarded-For,-1),lua.")
	}
	env := []string{"LIMITER_ADDRESS=" + s.redis.Addr}
	if s.password != "" {
		env = append(env, "LIMITER_PASSWORD="+s.password)
	}
	if how.patient {
		env = append(env, "LIMITER_TIMEOUT_MS=3600000")
	}
	if !how.closed {
		_, line, _ := strings.Cut(text, "fail open.\n")
		line, _, _ = strings.Cut(line, "\n")
		text = edit(t, text, line, "")
	}
	s.startProxy(t, env, program, "-db", "-f", write(t, dir, "haproxy.cfg", text))
}

// startTenLines starts nginx with the block of the README.
func startTenLines(t *testing.T, program string, s *stack, _ mode) {
	t.Helper()
	dir := t.TempDir()
	_, block, _ := strings.Cut(read(t, "README.md"), "```nginx\n")
	block, _, _ = strings.Cut(block, "```")
	if n := strings.Count(block, "\n"); n != 10 {
		t.Errorf("nginx's configuration in README.md has %d lines, not ten", n)
	}
	block = edit(t, block, "127.0.0.1:8000", s.site.Listener.Addr().String(), "127.0.0.1:6381", s.httpAddr)
	text := ownNginx(dir) + "access_log off;\nserver {\nlisten " + s.front + ";\n" + block + "}\n}\n"
	s.startProxy(t, nil, program, "-e", "stderr", "-c", write(t, dir, "nginx.conf", text))
}

// ownNginx begins a configuration that keeps all files in a directory, up to within http. Only root may read
// it.
func ownNginx(dir string) string {
	text := "daemon off;\nuser root root;\npid " + dir + "/pid;\nerror_log stderr;\nevents {}\n\nhttp {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += kind + "_temp_path " + dir + "/" + kind + ";\n"
	}
	return text
}

// secret is bcrypt's hash of the password, of the least cost.
const secret = "$2a$04$4M2dFXgRtzv9EWN.MPkFqeGGLmnfa8wkkSQDhbjlzfN5/mrNn7TsK"

func startCaddy(t *testing.T, program string, s *stack, how mode) {
	t.Helper()
	dir, open := t.TempDir(), processtest.FreeAddr(t)
	text := read(t, "deploy/caddy/Caddyfile")
	if how.closed {
		from, to := strings.Index(text, "\t\t@unavailable "), strings.Index(text, "\t}\n}\n")
		text = edit(t, text[:from]+text[to:], " 127.0.0.1:8079 {", " {")
	}
	if how.patient {
		text = edit(t, text, "100ms", "1h", "150ms", "1h")
	}
	if how.behind {
		text = edit(t, text, "\t\tlb_policy first\n", "\t\ttrusted_proxies 127.0.0.1\n\t\tlb_policy first\n")
	}
	text = "{\n\tadmin off\n\tstorage file_system " + dir + "\n}\n" + edit(t, text, "127.0.0.1:8000", s.site.Listener.Addr().String(),
		":8080 {", port(s.front)+" {", "reverse_proxy 127.0.0.1:6381", "reverse_proxy "+s.http.Addr, ":8079 {", port(open)+" {")
	write(t, dir, "people", "laoqian "+secret+"\n")
	write(t, dir, "api-keys", strings.Join(knownKeys(), " yes\n")+" yes\n")
	s.startProxy(t, []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "XDG_DATA_HOME=" + dir}, program, "run", "--config", write(t, dir, "Caddyfile", text))
}
