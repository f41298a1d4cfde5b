package door_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/server"
	h2 "cellserver/internal/test/http2test"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// serveGRPC serves pipes by a door of slow sessions.
func serveGRPC(t *testing.T) (p pipes, d *door.Door, on *server.Server) {
	t.Helper()
	return serveAged(t, 0, 0)
}

// serveAged is serveGRPC with bounds of a connection's age.
func serveAged(t *testing.T, age, grace time.Duration) (p pipes, d *door.Door, on *server.Server) {
	t.Helper()
	now, log := func() int64 { return time.Now().UnixNano() }, slog.New(slog.DiscardHandler)
	on = server.New(server.Config{Now: now, Log: log, Limits: server.Limits{MaxClients: 10}})
	d = door.NewGRPC(door.Config{
		Name: peer.GRPC, Server: on, Users: acl.NewUsers(catalog.New().ForRules()), Tokens: &door.Tokens{}, Now: now, Log: log,
		NewSession: func(peer.Peer, peer.Conn) door.Session { return slowSession{new(atomic.Int64), new(atomic.Int64)} },
		Admit:      func(peer.Peer) string { return "" },

		MaxConnectionAge: age, MaxConnectionAgeGrace: grace,
	}, proceduresFor(&atomic.Int64{}))
	p = pipes{make(chan net.Conn), make(chan struct{})}
	go func() { _ = d.Serve(p) }()
	return p, d, on
}

// TestGRPCTimes: how long a client of gRPC stays that does something now and then, or nothing.
func TestGRPCTimes(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	ping := string(h2.Frame(h2.Ping, 0, 0, "12345678"))
	for _, tt := range []struct {
		name, begins, then string
		every              time.Duration // 0 for never
		unread             bool
		stays, leaves      time.Duration
	}{
		{"sends nothing", "", "", 0, false, 9 * time.Second, 11 * time.Second},
		{"sends half a preface", preface[:10], "", 0, false, 9 * time.Second, 11 * time.Second},
		{"asks in HTTP/1", "GET / HTTP/1.1\r\n", "x", 100 * time.Millisecond, false, 0, time.Second},
		{"answers no ping", preface, "", 0, false, 49 * time.Second, 52 * time.Second},
		{"pings as Envoy does", preface, ping, 10 * time.Second, false, 170 * time.Second, 0},
		{"pings too often", preface, ping, time.Second, false, 0, 30 * time.Second},
		{"is idle", preface, ping, 20 * time.Second, false, 179 * time.Second, 6 * time.Minute},
		{"reads nothing", preface, ping, 10 * time.Second, true, 0, 61 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, d, on := serveGRPC(t)
			theirs, ours := net.Pipe()
			p.ends <- ours
			var all sync.WaitGroup
			all.Go(func() {
				_, err := io.WriteString(theirs, tt.begins)
				for err == nil && tt.every > 0 {
					time.Sleep(tt.every)
					_, err = io.WriteString(theirs, tt.then)
				}
			})
			if !tt.unread {
				all.Go(func() { _, _ = io.Copy(io.Discard, theirs) })
			}
			time.Sleep(tt.stays)
			synctest.Wait()
			if n := on.Stats().Connected; tt.stays > 0 && n != 1 {
				t.Errorf("one that %s: %d clients after %v", tt.name, n, tt.stays)
			}
			if tt.leaves > 0 {
				time.Sleep(tt.leaves - tt.stays)
				synctest.Wait()
				if n := on.Stats().Connected; n != 0 {
					t.Errorf("one that %s: %d clients after %v", tt.name, n, tt.leaves)
				}
			}
			_ = theirs.Close()
			all.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			d.Shutdown(ctx)
			time.Sleep(time.Minute) // for timers
		})
	}
}

// queued writes in the background.
type queued struct {
	net.Conn
	queue chan []byte
}

func (q queued) Write(b []byte) (int, error) {
	q.queue <- b
	return len(b), nil
}

func (q queued) run() {
	for b := range q.queue {
		_, _ = q.Conn.Write(b)
	}
}

// TestLateMessages: a message that is not whole in ten seconds ends its stream, not its connection.
func TestLateMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d, on := serveGRPC(t)
		theirs, ours := net.Pipe()
		p.ends <- ours
		var ends atomic.Int64
		q := queued{theirs, make(chan []byte, 10)}
		go q.run()
		defer close(q.queue)
		c, _ := h2.Begin(q)
		b, stream := c.Open(h2.GRPC(ofUsers), 0)
		_, _ = c.Write(append(b, h2.Frame(h2.Data, 0, stream, "\x00\x00\x00\x00\x02a")...))
		go func() {
			for {
				r, err := c.Next()
				if err != nil {
					return
				}
				if r.Ends() {
					ends.Add(1)
				}
			}
		}()
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n := ends.Load(); n != 0 {
			t.Errorf("%d streams ended in 9 s", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := ends.Load(); n != 1 || on.Stats().Connected != 1 {
			t.Errorf("%d streams ended in 11 s, %d clients", n, on.Stats().Connected)
		}
		_ = theirs.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d.Shutdown(ctx)
		time.Sleep(time.Minute)
	})
}
