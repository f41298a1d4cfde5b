package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/xds/xdspb"
	"cellserver/internal/edge/xds/xdstest"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/test/certtest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/processtest"
)

// waiting is a server that opens no address before it has limits.
type waiting struct {
	socket string
	log    *processtest.Log
	ended  chan error
	stop   func()
}

func startWaiting(t *testing.T, xds *xdstest.Server, args ...string) *waiting {
	t.Helper()
	dir, err := os.MkdirTemp("", "x") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &waiting{socket: filepath.Join(dir, "s"), log: &processtest.Log{}, ended: make(chan error, 1)}
	o, err := optionsOf(append([]string{"--addr", "", "--metrics-addr", "", "--unixsocket", w.socket, "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	o.Doors.Envoy.Ratelimit.AwaitsConfig = true
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() { w.ended <- logAndServe(ctx, o, w.log) }()
	return w
}

func (w *waiting) isOpen() bool {
	_, err := os.Stat(w.socket)
	return err == nil
}

func (w *waiting) end(t *testing.T) {
	t.Helper()
	w.stop()
	if err := <-w.ended; err != nil {
		t.Error(err)
	}
}

// TestNoAddressBeforeTheFirstLimits: a server that awaits them opens none, and a signal ends it. What an
// earlier process has kept counts as the first.
func TestNoAddressBeforeTheFirstLimits(t *testing.T) {
	xds, dir := xdstest.New(t, "127.0.0.1:0"), t.TempDir()
	asked := func(*xdspb.DiscoveryRequest) bool { return true }

	w := startWaiting(t, xds)
	xds.Await(t, "at all", asked)
	if w.isOpen() {
		t.Error("an address is open without limits")
	}
	w.end(t)
	if !strings.Contains(w.log.String(), "stopped before clients were served") {
		t.Errorf("the log is %s", w.log)
	}

	w = startWaiting(t, xds, "--data-dir", dir)
	patience.Until(func() bool { return strings.Contains(w.log.String(), "no address is open before") })
	if w.isOpen() {
		t.Error("an address is open without limits")
	}
	xds.Set(t, "1", xdstest.Limit("d", "k", 1))
	if !patience.Until(w.isOpen) {
		t.Fatalf("no address is open with limits: %s", w.log)
	}
	kept := func() bool { text, _ := os.ReadFile(filepath.Join(dir, envoyconfig.KeptName)); return len(text) > 0 }
	patience.Until(func() bool { return kept() && strings.Contains(w.log.String(), "msg=ready") })
	w.end(t)

	xds.Stop()
	w = startWaiting(t, xds, "--data-dir", dir)
	if !patience.Until(w.isOpen) {
		t.Fatalf("no address is open with kept limits: %s", w.log)
	}
	patience.Until(func() bool { return strings.Contains(w.log.String(), "msg=ready") })
	w.end(t)
}

// TestAcknowledgedLimitsAreKept, also those that come while the server ends.
func TestAcknowledgedLimitsAreKept(t *testing.T) {
	for range 5 {
		xds, dir := xdstest.New(t, "127.0.0.1:0"), t.TempDir()
		a, stop, ended := startApp(t, "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr, "--data-dir", dir)
		a.awaitHealth(t)
		acknowledged := func() (latest int) {
			for _, q := range xds.Requests() {
				if version, err := strconv.Atoi(q.VersionInfo); err == nil && q.ResponseNonce != "" {
					latest = max(latest, version)
				}
			}
			return latest
		}
		done, setting := make(chan struct{}), sync.WaitGroup{}
		setting.Go(func() {
			for version := 1; ; version++ {
				xds.Set(t, strconv.Itoa(version), xdstest.Limit("d", "k", 1))
				for acknowledged() < version {
					select {
					case <-done:
						return
					default:
						runtime.Gosched()
					}
				}
			}
		})
		patience.Until(func() bool { return acknowledged() > 0 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(done)
		setting.Wait()
		if st := a.rules.Limits().XDS; st.Unkept > 0 {
			t.Errorf("%+v", st)
		}
		xds.Stop()
		again, stopAgain, endedAgain := startApp(t, "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr, "--data-dir", dir)
		if kept, _ := strconv.Atoi(again.rules.Limits().XDS.Version); kept < acknowledged() {
			t.Errorf("version %d is kept, and %d acknowledged", kept, acknowledged())
		}
		stopAgain()
		if err := <-endedAgain; err != nil {
			t.Error(err)
		}
	}
}

// TestDirectoryStaysOpenForWriters: the limits for Envoy are kept beside the states.
func TestDirectoryStaysOpenForWriters(t *testing.T) {
	dir := t.TempDir()
	a, stop, ended := startApp(t, "--data-dir", dir)
	a.awaitHealth(t)
	a.writers.Add(1)
	stop()
	if !patience.Until(func() bool { return a.parts.String() == "the data directory" }) {
		t.Errorf("still running: %s", a.parts.String())
	}
	if _, err := disk.OpenOS(dir); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("the directory is not in use: %v", err)
	}
	a.writers.Done()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestXDSFiles: mistakes in the TLS files of --envoy-xds are told by config check, and end a start.
func TestXDSFiles(t *testing.T) {
	ca, dir := certtest.NewCA(t), t.TempDir()
	cert, key := ca.Issue(t, "client")
	path := func(name string) string { return filepath.Join(dir, name) }
	certtest.Write(t, path("ca"), ca.PEM)
	certtest.Write(t, path("cert"), cert)
	certtest.Write(t, path("key"), key)
	certtest.Write(t, path("none"), nil)
	base := []string{"--grpc-addr", "127.0.0.1:0", "--envoy-xds", "127.0.0.1:1", "--envoy-xds-tls"}
	for _, tt := range []struct {
		args []string
		want string // "" for no mistake
	}{
		{[]string{"--envoy-xds-tls-ca", path("ca"), "--envoy-xds-tls-cert", path("cert"), "--envoy-xds-tls-key", path("key")}, ""},
		{nil, ""},
		{[]string{"--envoy-xds-tls-ca", path("none")}, "--envoy-xds-tls-ca: " + path("none") + " has no certificate in PEM"},
		{[]string{"--envoy-xds-tls-ca", path("absent")}, "--envoy-xds-tls-ca: "},
		{[]string{"--envoy-xds-tls-cert", path("cert"), "--envoy-xds-tls-key", path("none")}, "--envoy-xds-tls-cert and -key: "},
		{[]string{"--envoy-xds-tls-cert", path("cert")}, "--envoy-xds-tls-cert and --envoy-xds-tls-key require each other; set both"},
		{[]string{"--envoy-config", dir}, "--envoy-config and --envoy-xds exclude each other; set only one"},
		{[]string{"--envoy-xds-headers", "a b=c"}, "--envoy-xds-headers takes NAME=TEXT, separated by commas, each a header of HTTP/2; got \"...\""},
		{[]string{"--envoy-xds-headers", "grpc-timeout=1"}, "--envoy-xds-headers takes "},
		{[]string{"--envoy-xds-node-metadata", "a"}, "--envoy-xds-node-metadata takes NAME=TEXT"},
	} {
		var out, errOut bytes.Buffer
		err := Run(t.Context(), append(append([]string{"config", "check"}, base...), tt.args...), nil, &out, &errOut)
		told := out.String()
		if err != nil {
			told += err.Error()
		}
		if (err == nil) != (tt.want == "") || !strings.Contains(told, tt.want) {
			t.Errorf("%q: %v, %s", tt.args, err, told)
		}
	}
	o, err := optionsOf(append(base, "--addr", "", "--unixsocket", path("s"), "--metrics-addr", "", "--envoy-xds-tls-ca", path("none"))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := logAndServe(t.Context(), o, &processtest.Log{}); err == nil || !strings.Contains(err.Error(), "--envoy-xds-tls-ca: ") {
		t.Errorf("a start: %v", err)
	}
}

// TestXDSHeadersAreNotShown, as they may have a token.
func TestXDSHeadersAreNotShown(t *testing.T) {
	var out bytes.Buffer
	args := []string{"config", "show", "--grpc-addr", "127.0.0.1:0", "--envoy-xds", "127.0.0.1:1", "--envoy-xds-headers", "authorization=5ecret"}
	if err := Run(t.Context(), args, nil, &out, &out); err != nil || strings.Contains(out.String(), "5ecret") || !strings.Contains(out.String(), "#envoy-xds-headers: (not shown)") {
		t.Errorf("%v: %s", err, out.String())
	}
}
