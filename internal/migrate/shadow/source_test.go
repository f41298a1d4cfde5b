package shadow

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/decide/observe"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// source is a Redis with redis-cell as far as a follower uses it. Tests play the other clients and set its
// values.
type source struct {
	addr string

	// Set before it serves:
	password string
	hides    bool   // hide the follower's other connection
	pinged   func() // called when the stream begins
	read     func() // called after each read

	mu       sync.Mutex // guards all below
	nowNs    int64
	values   map[string]string // by database/key, such as 0/key; "-..." is an error
	monitors []net.Conn
}

func startSource(t *testing.T, set func(s *source)) *source {
	t.Helper()
	s := &source{nowNs: t0, values: map[string]string{}, pinged: func() {}, read: func() {}}
	s.addr = resptest.Serve(t, s.serve)
	set(s)
	return s
}

func (s *source) serve(nc net.Conn) {
	db := uint16(0)
	r := bufio.NewReader(nc)
	authenticated, pinged := s.password == "", false
	for {
		args, err := resptest.ReadCommand(r)
		if err != nil {
			return
		}
		s.mu.Lock()
		name := strings.ToLower(args[0])
		text := "-ERR unknown command"
		switch {
		case name == "auth":
			text, authenticated = "+OK", true
			if strings.Join(args[1:], ":") != s.password {
				text, authenticated = "-WRONGPASS invalid username-password pair or user is disabled.", false
			}
		case !authenticated:
			text = "-NOAUTH Authentication required."
		case name == "monitor":
			text = "+OK"
			s.monitors = append(s.monitors, nc)
		case name == "ping":
			text = "$" + strconv.Itoa(len(args[1])) + "\r\n" + args[1]
		case name == "select":
			n, _ := strconv.Atoi(args[1])
			text, db = "+OK", uint16(n)
		case name == "get":
			text = s.getLocked(fmt.Sprintf("%d/%s", db, args[1]))
		}
		_, _ = fmt.Fprintf(nc, "%s\r\n", text)
		if name != "monitor" && name != "auth" && !s.hides {
			s.showLocked(nc.RemoteAddr().String(), db, args...)
		}
		s.mu.Unlock()
		switch name {
		case "ping":
			if !pinged {
				s.pinged()
			}
			pinged = true
		case "get":
			s.read()
		}
	}
}

func (s *source) getLocked(place string) string {
	value, ok := s.values[place]
	switch {
	case !ok:
		return "$-1"
	case strings.HasPrefix(value, "-"):
		return value
	}
	return fmt.Sprintf("$%d\r\n%s", len(value), value)
}

// called plays another client's call, after which a key of database 0 has a value.
func (s *source) called(nowNs int64, place, value string, args ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nowNs = nowNs
	if value != "" {
		s.values[place] = value
	}
	db, _ := strconv.Atoi(place[:1])
	s.showLocked("192.0.2.1:5000", uint16(db), args...)
}

func (s *source) showLocked(client string, db uint16, args ...string) {
	line := observe.Line{NowNs: s.nowNs, DB: db, Peer: &peer.Peer{Addr: client}}
	for _, arg := range args {
		line.Args = append(line.Args, []byte(arg))
	}
	for _, nc := range s.monitors {
		_, _ = nc.Write(line.Append(nil))
	}
}

// write sends to the client in MONITOR.
func (s *source) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nc := range s.monitors {
		_, _ = nc.Write([]byte(text))
	}
}
