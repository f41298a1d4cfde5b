package main

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/adapters/go/internal/servertest"
)

func seedOf(t *testing.T) uint64 { return servertest.Seed(t, 51) }

// servers is a cellserver that is killed and comes back: itself, by its directory, or a replica in its place.
type servers struct {
	t        *testing.T
	limits   string
	fsync    string
	failover bool

	addr         string // for clients
	now, replica *servertest.Server
	args         []string
	leader       atomic.Pointer[string] // for failover, where addr leads to; nil is nowhere
	kills        []time.Time
	restarts     []time.Time
}

func (s *servers) start() {
	if s.failover {
		s.listen()
		s.now = servertest.Start(s.t, binary, "--limits-file="+s.limits)
		s.leader.Store(&s.now.Addr)
		s.follow()
		return
	}
	s.addr = servertest.FreeAddr(s.t)
	s.args = []string{
		"--addr=" + s.addr, "--limits-file=" + s.limits, "--fsync-interval=" + s.fsync,
		"--data-dir=" + filepath.Join(s.t.TempDir(), "data"),
	}
	s.now = servertest.Start(s.t, binary, s.args...)
}

func (s *servers) follow() {
	s.replica = servertest.Start(s.t, binary, "--limits-file="+s.limits, "--replica-of="+s.now.Addr)
	until(s.t, "a replica", func() bool {
		return strings.Contains(s.replica.Do(s.t, "info replication").(string), "master_link_status:up")
	})
}

func (s *servers) kill() {
	s.kills = append(s.kills, time.Now())
	s.now.Stop()
	s.leader.Store(nil)
}

// settledBy returns when a settlement of a time can have been answered: while there is no server, after the
// next one's start.
func (s *servers) settledBy(at time.Time) time.Time {
	for i, restart := range s.restarts {
		if at.After(s.kills[i]) && at.Before(restart) {
			return restart
		}
	}
	return at
}

func (s *servers) restart() {
	defer func() { s.restarts = append(s.restarts, time.Now()) }()
	if !s.failover {
		s.now = servertest.Start(s.t, binary, s.args...)
		return
	}
	s.now = s.replica
	s.now.Do(s.t, "replicaof no one")
	s.follow()
	s.leader.Store(&s.now.Addr)
}

// listen has an address that leads to whoever leads, as a proxy or a service of the network does.
func (s *servers) listen() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = l.Close() })
	s.addr = l.Addr().String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go s.pass(client)
		}
	}()
}

func (s *servers) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	to := s.leader.Load()
	if to == nil {
		return
	}
	server, err := net.Dial("tcp", *to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
