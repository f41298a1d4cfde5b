package xdstest

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestAllRemovedWhileAway: limits that are deleted while cellserver is away are in use again at its start,
// until the server is heard, and then gone.
func TestAllRemovedWhileAway(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			p, dir := startControlPlane(t), "CELLSERVER_DATA_DIR="+t.TempDir()
			p.Set(t, "1", limits("shop", 3, "a"))
			s := start(t, p, dir)
			restart := func(want uint32) {
				t.Helper()
				s.Stop(t, syscall.SIGTERM)
				p.Down()
				s = start(t, p, dir)
				s.HasLimit(t, "at a start without a server", want)
			}
			p.Accepted(t, "1")
			restart(3)
			s.Shows(t, "0", "1")
			p.Set(t, version)
			p.Up(t)
			p.Accepted(t, version)
			s.Shows(t, "1", "0")
			s.HasLimit(t, "after all were removed", 0)
			if got := p.Opening(); !slices.Contains(got[1:], "1") {
				t.Errorf("streams began with versions %q", got)
			}
			restart(0)
		})
	}
}

// TestServerAway: while no server answers for a minute, the limits stay in use and the client tries again and
// again. Once a server is back, its new limits are in use.
func TestServerAway(t *testing.T) {
	t.Parallel()
	p := startControlPlane(t)
	p.Set(t, "1", limits("shop", 3, "a"))
	s := start(t, p)
	s.Shows(t, "1", "0")
	p.Down()
	away := time.Minute
	if testing.Short() {
		away = 0
	}
	t.Logf("%d connections in vain", hangUp(t, p.Addr, away))
	s.Shows(t, "0", "0")
	s.HasLimit(t, "without a server", 3)
	p.Set(t, "2", limits("shop", 4, "a"))
	p.Up(t)
	p.Accepted(t, "2")
	s.Shows(t, "1", "0")
	s.HasLimit(t, "once the server is back", 4)
	if got := p.Opening(); !slices.Equal(got, []string{"", "1"}) {
		t.Errorf("streams began with versions %q", got)
	}
}

// hangUp ends connections as soon as they are made, for a time and two of them at least.
func hangUp(t *testing.T, addr string, least time.Duration) (n int) {
	t.Helper()
	l := listen(t, addr)
	defer func() { _ = l.Close() }()
	for began := time.Now(); n < 2 || time.Since(began) < least; n++ {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	return n
}

// TestRestartWithoutServer: what was kept decides at once, and is stale until the server answers, also if
// that has begun to count versions anew.
func TestRestartWithoutServer(t *testing.T) {
	t.Parallel()
	p, dir := startControlPlane(t), "CELLSERVER_DATA_DIR="+t.TempDir()
	p.Set(t, "1", limits("shop", 3, "a"))
	s := start(t, p, dir)
	p.Accepted(t, "1")
	s.Stop(t, syscall.SIGKILL)
	p.Down()
	s = start(t, p, dir)
	s.HasLimit(t, "at a start without a server", 3)
	s.Logged(t, `"stale":true`)
	s.Shows(t, "0", "1")
	p.Set(t, "1", limits("shop", 4, "a"))
	p.Up(t)
	s.Shows(t, "1", "0")
	s.HasLimit(t, "once the server is back", 4)
}
