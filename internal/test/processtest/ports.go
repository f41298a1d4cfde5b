package processtest

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// FreeAddr returns a free address, for programs that cannot listen on port 0 or must listen again. It does
// not listen there itself: a process that another test forks meanwhile has the listener until it executes.
func FreeAddr(t *testing.T) string {
	t.Helper()
	var addr string
	if err := own.take(func(port int) bool {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}); err != nil {
		t.Fatal(err)
	}
	return addr
}

// Listen listens on a free port of 127.0.0.1. It takes each once, or a test would get one that another, of
// this process or another, has found and does not use yet. They are below the ephemeral range, so outgoing
// connections do not take them.
func Listen() (net.Listener, error) { return own.listen() }

var own ports //nolint:gochecknoglobals // one for all tests of a process

// ports are blocks of ports, each of which belongs to the process that listens on the first of them.
type ports struct {
	mu     sync.Mutex
	owned  []net.Listener // on first ports, until the process ends
	number int            // of the block to try first
	last   int            // port
	left   int            // ports after the last in its block
}

// The first ports of blocks are odd numbers, as nobody chooses for a server.
const (
	lowestPort = 2_001
	blockPorts = 50
	blocks     = 600
)

func (p *ports) listen() (l net.Listener, err error) {
	err = p.take(func(port int) bool {
		var busy error
		l, busy = listenOn(port)
		return busy == nil
	})
	return l, err
}

// take has the next port tried until one is free.
func (p *ports) take(isFree func(port int) bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 2 * blockPorts {
		if p.left == 0 && !p.takeBlockLocked() {
			return errors.New("processtest: other processes have all ports")
		}
		p.last, p.left = p.last+1, p.left-1
		if isFree(p.last) {
			return nil
		}
	}
	return errors.New("processtest: a hundred ports are taken")
}

func (p *ports) takeBlockLocked() bool {
	if p.number == 0 {
		p.number = os.Getpid() // processes under way have others
	}
	for range blocks {
		first := lowestPort + p.number%blocks*blockPorts
		p.number++
		if l, err := listenOn(first); err == nil {
			p.owned, p.last, p.left = append(p.owned, l), first, blockPorts-1
			return true
		}
	}
	return false
}

func listenOn(port int) (net.Listener, error) {
	return net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
}
