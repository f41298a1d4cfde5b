package app

import (
	"io"
	"net"
	"strings"
	"testing"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// say returns the first line that a new connection to the server gets for a command.
func (a *app) say(t *testing.T, command string) string {
	t.Helper()
	nc := newTestClient(a)
	defer func() { _ = nc.Close() }()
	if _, err := io.WriteString(nc, command+"\r\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<10)
	n, err := nc.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b[:n]), "\r\n")
	return line
}

// TestRatelimitListensWhenLoaded: in the place of envoyproxy/ratelimit the addresses that Envoy and the
// kubelet know open once the states are loaded; those of cellserver alone are open before. The page shows
// them meanwhile.
func TestRatelimitListensWhenLoaded(t *testing.T) {
	dir := t.TempDir()
	a, stop, ended := startApp(t, "--data-dir", dir)
	a.awaitHealth(t)
	a.say(t, "CL.THROTTLE key 9 1 100000")
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	late := []string{processtest.FreeAddr(t), processtest.FreeAddr(t), processtest.FreeAddr(t)}
	o, err := optionsOf("--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--data-dir", dir, "--grpc-addr", late[0])
	if err != nil {
		t.Fatal(err)
	}
	o.Doors.Envoy.Ratelimit.On, o.Doors.Envoy.Ratelimit.HTTPAddr, o.Doors.Envoy.Ratelimit.DebugAddr = true, late[1], late[2]
	a, run := openApp(t, o)
	held := a.storage.Tables.BeginAll(a.now()) // so that no state is loaded
	stop, ended = run()
	if got := a.say(t, "PING"); !strings.HasPrefix(got, "-LOADING ") {
		t.Errorf("while it loads: %s", got)
	}
	shown := func() (n int) {
		for _, l := range a.facts()().Listens {
			if strings.HasPrefix(l.Name, "grpc") || strings.HasPrefix(l.Name, "ratelimit") {
				n++
			}
		}
		return n
	}
	for _, addr := range late {
		if accepts(addr) || shown() > 0 {
			t.Errorf("%s is open while the server loads, and the page shows %d", addr, shown())
		}
	}
	held.End()
	if !patience.Until(func() bool { return shown() == len(late) }) {
		t.Errorf("the page shows %d of %d addresses", shown(), len(late))
	}
	for _, addr := range late {
		if !accepts(addr) {
			t.Errorf("%s is not open when the server is ready", addr)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func accepts(addr string) bool {
	nc, err := net.Dial("tcp", addr)
	if err == nil {
		_ = nc.Close()
	}
	return err == nil
}
