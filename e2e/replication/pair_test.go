package replication

import (
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// server is a running server with a client.
type server struct {
	*harness.Process
	rdb *redis.Client
}

// start starts a server.
func start(t *testing.T, args ...string) *server {
	t.Helper()
	p := harness.StartServer(t, args...)
	return &server{p, harness.Database(t, p, 0)}
}

// startRedis starts a redis-server with a client.
func startRedis(t *testing.T, args ...string) *server {
	t.Helper()
	p := harness.StartRedis(t, args...)
	return &server{p, harness.Database(t, p, 0)}
}

// startReplica starts a server that follows an address, and waits until it is in step.
func startReplica(t *testing.T, of string, args ...string) *server {
	t.Helper()
	s := start(t, append([]string{"--replica-of", of}, args...)...)
	s.awaitLink(t, "up")
	return s
}

// do returns the reply to a command, which must not be an error.
func (s *server) do(t *testing.T, args ...any) any {
	t.Helper()
	reply, err := s.rdb.Do(t.Context(), args...).Result()
	if err != nil && err != redis.Nil { //nolint:errorlint // it is never wrapped
		t.Fatalf("%v: %v", args, err)
	}
	return reply
}

// say returns the text of a reply, also of an error.
func (s *server) say(t *testing.T, args ...any) string {
	t.Helper()
	reply, err := s.rdb.Do(t.Context(), args...).Result()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(reply)
}

// expect compares the beginning of a reply.
func (s *server) expect(t *testing.T, want string, args ...any) {
	t.Helper()
	if got := s.say(t, args...); !strings.HasPrefix(got, want) {
		t.Errorf("%v: got %q, want %q", args, got, want)
	}
}

// fields returns the fields of INFO's sections.
func (s *server) fields(t *testing.T, sections ...any) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for line := range strings.Lines(s.say(t, append([]any{"INFO"}, sections...)...)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields
}

// field returns a field of INFO replication.
func (s *server) field(t *testing.T, name string) string {
	t.Helper()
	return s.fields(t, "replication")[name]
}

// await waits until a field of INFO replication has a value.
func (s *server) await(t *testing.T, name, want string) {
	t.Helper()
	s.Eventually(t, "have "+name+" "+want, func() bool { return s.field(t, name) == want })
}

func (s *server) awaitLink(t *testing.T, want string) {
	t.Helper()
	s.await(t, "master_link_status", want)
}

// inStep waits until a replica has everything.
func (s *server) inStep(t *testing.T) {
	t.Helper()
	s.expect(t, "1", "WAIT", 1, 0)
}

// crash kills the server.
func (s *server) crash(t *testing.T) {
	t.Helper()
	s.Stop(t, syscall.SIGKILL)
}

// promote makes the server lead, and waits until it accepts changes. It reports whether a leader that was
// there has handed over: one that is not scheduled for a second is taken over, as after a crash, or goes on
// leading, and is asked again.
func (s *server) promote(t *testing.T) (handedOver bool) {
	t.Helper()
	before := s.field(t, "cell_handover_timeouts")
	s.Eventually(t, "lead", func() bool {
		s.say(t, "REPLICAOF", "NO", "ONE")
		return s.say(t, "DEL", "absent") == "0" // refused, but by a leader
	})
	return s.field(t, "cell_handover_timeouts") == before
}

// follow makes the server follow an address.
func (s *server) follow(t *testing.T, addr string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	s.expect(t, "OK", "REPLICAOF", host, port)
}

// dumps returns the DUMP of each key.
func (s *server) dumps(t *testing.T) map[string]string {
	t.Helper()
	return harness.Dumps(t, s.Process, 0)
}

// sameStates compares the keys of two servers.
func sameStates(t *testing.T, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for key, state := range want {
		if got[key] != state {
			t.Errorf("%s is %q, want %q", key, got[key], state)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("there is %s", key)
		}
	}
}

// link is a proxy between a replica and its leader, which can be cut, and delays what it carries.
type link struct {
	addr string

	mu    sync.Mutex // guards all below
	to    string
	isCut bool
	delay time.Duration // of each way
	conns map[net.Conn]struct{}
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{addr: l.Addr().String(), to: to, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		_ = l.Close()
		k.cut()
	})
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go k.join(from)
		}
	}()
	return k
}

// lead sets the server that new connections lead to.
func (k *link) lead(to string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = to
}

// slow sets the round trip.
func (k *link) slow(roundTrip time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay = roundTrip / 2
}

func (k *link) join(from net.Conn) {
	k.mu.Lock()
	target := k.to
	k.mu.Unlock()
	to, err := net.Dial("tcp", target)
	if err != nil {
		_ = from.Close()
		return
	}
	if !k.add(from, to) {
		return
	}
	go k.pump(from, to)
	k.pump(to, from)
}

// piece is what a link has read.
type piece struct {
	bytes []byte
	due   time.Time
}

// pump forwards one way. What is on the way does not hold up what follows.
func (k *link) pump(to, from net.Conn) {
	pieces := make(chan piece, 1000)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			k.mu.Lock()
			due := time.Now().Add(k.delay)
			k.mu.Unlock()
			pieces <- piece{buf[:n], due}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	for range pieces { // else the reader waits
	}
}

func (k *link) add(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		if k.isCut {
			_ = c.Close()
		} else {
			k.conns[c] = struct{}{}
		}
	}
	return !k.isCut
}

// cut ends all connections, and those to come.
func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = true
	for c := range k.conns {
		_ = c.Close()
	}
	clear(k.conns)
}

// mend lets connections through again.
func (k *link) mend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = false
}

// pairOver returns a leader, its replica and the link between them.
func pairOver(t *testing.T, args ...string) (leader, replica *server, between *link) {
	t.Helper()
	leader = start(t, args...)
	between = newLink(t, leader.Addr)
	return leader, startReplica(t, between.addr, args...), between
}
