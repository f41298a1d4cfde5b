package xds_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/xds"
	"cellserver/internal/keep/persist/disk/disktest"
)

// life is a process's, in a directory.
func (s *server) life(t *testing.T, dir *disktest.Dir) *client {
	t.Helper()
	config := s.configOf()
	config.Keep = envoyconfig.NewKept(dir)
	return run(t, config)
}

// TestKeptLimits: they are used at once at a start, are stale until the server says others, or none, and the
// first request has their version.
func TestKeptLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := serve(t, nil), disktest.New()
		first := server.life(t, dir)
		s := <-server.streams
		s.next()
		if st := first.Status(); st.Loaded || st.Stale {
			t.Errorf("in an empty directory: %+v", st)
		}
		s.send(t, answer(t, "1", domain("a", 1)))
		s.next()
		synctest.Wait()
		first.stop()

		server.away(true)
		dir = dir.Kill()
		second := server.life(t, dir)
		<-second.First()
		time.Sleep(time.Hour)
		if st := second.Status(); !st.Loaded || !st.Stale || st.Version != "1" || st.Accepted != 0 {
			t.Errorf("without a server: %+v", st)
		}
		second.wantLimits(t, map[string]uint32{"a": 1})
		server.away(false)
		s = <-server.streams
		s.want(t, request{"1", "", ""})
		s.send(t, answer(t, ""))
		s.want(t, request{"", "nonce-", ""})
		if st := second.Status(); st.Stale || st.Version != "" {
			t.Errorf("with an answer: %+v", st)
		}
		second.wantLimits(t, map[string]uint32{})
		second.stop()

		third := server.life(t, dir.Kill())
		(<-server.streams).want(t, request{})
		if st := third.Status(); !st.Loaded || !st.Stale {
			t.Errorf("no limits are kept, too: %+v", st)
		}
	})
}

// TestSilence: a server that says nothing to the version it has, too, is asked anew, and limits are stale
// until it answers. After a refusal nothing is asked.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, dir := serve(t, nil), disktest.New()
		first := server.life(t, dir)
		s := <-server.streams
		s.send(t, answer(t, "1", domain("a", 1)))
		s.next()
		s.next()
		synctest.Wait()
		first.stop()

		second := server.life(t, dir.Kill())
		s = <-server.streams
		s.next()
		time.Sleep(9 * time.Second)
		s.send(t, answer(t, "2", bad))
		s.next()
		time.Sleep(time.Hour)
		if st := second.Status(); !st.Stale || st.Version != "1" || len(s.requests) > 0 {
			t.Errorf("after a refusal: %+v, %d requests", st, len(s.requests))
		}
		s.end <- nil
		s = <-server.streams
		s.want(t, request{"1", "", ""})
		began := time.Now()
		s.want(t, request{"1-asked-anew", "", ""})
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("asked anew after %s", waited)
		}
		time.Sleep(time.Hour)
		if st := second.Status(); !st.Stale || !st.Connected || len(s.requests) > 0 {
			t.Errorf("after silence: %+v, %d requests", st, len(s.requests))
		}
		s.send(t, answer(t, "1", domain("b", 2)))
		s.want(t, request{"1", "nonce-1", ""})
		if st := second.Status(); st.Stale {
			t.Errorf("after an answer: %+v", st)
		}
		second.wantLimits(t, map[string]uint32{"b": 2})
	})
}

// TestDamagedKeptLimits: the server's are awaited, and replace them.
func TestDamagedKeptLimits(t *testing.T) {
	whole := keptText(t)
	wrongType := answer(t, "1", domain("a", 1))
	wrongType.TypeUrl = "another"
	for name, text := range map[string][]byte{
		"empty": {}, "cut": whole[:len(whole)-20], "changed": bytes.Replace(whole, []byte("a-resource"), []byte("b-resource"), 1),
		"newer":       resummed(bytes.Replace(whole, []byte("format 1"), []byte("format 2"), 1)),
		"no message":  resummed([]byte("cellserver limits for Envoy, format 1\n\xff")),
		"not ours":    resummed([]byte("domain: a\n")),
		"bad limits":  resummed(append([]byte("cellserver limits for Envoy, format 1\n"), marshal(t, answer(t, "1", bad))...)),
		"wrong types": resummed(append([]byte("cellserver limits for Envoy, format 1\n"), marshal(t, wrongType)...)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, dir := serve(t, nil), disktest.New()
				dir.SetContents(envoyconfig.KeptName, text)
				c := server.life(t, dir)
				if st := c.Status(); st.Loaded || !strings.Contains(c.log.String(), "cannot be used") {
					t.Errorf("%+v: %s", st, c.log)
				}
				s := <-server.streams
				s.want(t, request{})
				s.send(t, answer(t, "2", domain("a", 2)))
				s.want(t, request{"2", "nonce-2", ""})
				synctest.Wait()
				c.stop()
				again := server.life(t, dir.Kill())
				again.wantLimits(t, map[string]uint32{"a": 2})
			})
		})
	}
}

var _ xds.Keep = (*envoyconfig.Kept)(nil)
