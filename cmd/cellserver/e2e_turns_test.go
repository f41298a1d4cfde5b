package main

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// endless are scripts that must be stopped: a plain loop, one that catches errors, and one that produces garbage.
var endless = []string{
	"while true do end",
	"while true do pcall(function() while true do error('x') end end) end",
	"local t = {} while true do t[1] = {string.rep('x', 100)} end",
	"while true do redis.call('cl.throttle', KEYS[1], 15, 30, 60) end",
}

// TestEndlessScriptsLeaveOthersTheirTurn measures how long an occasional client waits, in phases with and without others
// that send such scripts without a pause. Its slowest replies are only logged, because on a busy machine they wait for
// other processes. TestScriptsYield asserts that scripts yield.
func TestEndlessScriptsLeaveOthersTheirTurn(t *testing.T) {
	rounds, phase := 6, 200*time.Millisecond
	if testing.Short() || isRace() {
		rounds = 2
	}
	for name, args := range map[string][]string{"default": nil, "io-threads=0": {"--io-threads", "0"}} {
		t.Run(name, func(t *testing.T) {
			p := startServer(t, args...)
			var loopers []net.Conn
			for range endless {
				loopers = append(loopers, p.dial(t))
			}
			polite := newPolite(t, p)
			polite.ask(t, phase) // not counted: warms up
			var quiet, busy waits
			for range rounds {
				quiet = append(quiet, polite.ask(t, phase)...)
				busy = append(busy, whileLooping(t, loopers, func() []time.Duration { return polite.ask(t, phase) })...)
			}
			t.Logf("quiet p50 %s, p99 %s; busy p50 %s, p99 %s", quiet.quantile(0.5), quiet.quantile(0.99), busy.quantile(0.5), busy.quantile(0.99))
			if busy.quantile(0.5) > 4*quiet.quantile(0.5)+time.Millisecond && !isRace() { // that would measure the race detector
				t.Error("others wait for scripts that never end")
			}
		})
	}
}

// waits holds how long a client waited for each reply.
type waits []time.Duration

func (w waits) quantile(q float64) time.Duration {
	return slices.Sorted(slices.Values(w))[int(q*float64(len(w)))]
}

// whileLooping calls do while each connection sends one endless script after the other.
func whileLooping(t *testing.T, loopers []net.Conn, do func() []time.Duration) []time.Duration {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for i, nc := range loopers {
		wg.Go(func() {
			command := appendCommand(nil, "EVAL", endless[i], "1", "looper")
			for replies := bufio.NewReader(nc); ; {
				if _, err := nc.Write(command); err != nil {
					t.Error(err)
					return
				}
				line, err := replies.ReadString('\n')
				if err != nil || !strings.Contains(line, "was ended") {
					t.Errorf("%s: got %q, %v", endless[i], line, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	return do()
}

// polite is a client that pauses after each command.
type polite struct {
	nc      net.Conn
	replies *bufio.Reader
}

func newPolite(t *testing.T, p *process) *polite {
	nc := p.dial(t)
	return &polite{nc, bufio.NewReader(nc)}
}

// ask sends commands for some time, and returns how long each reply took.
func (c *polite) ask(t *testing.T, d time.Duration) (took []time.Duration) {
	t.Helper()
	command := appendCommand(nil, "CL.THROTTLE", "polite", "15", "30", "60")
	for began := time.Now(); time.Since(began) < d; time.Sleep(500 * time.Microsecond) {
		sent := time.Now()
		if _, err := c.nc.Write(command); err != nil {
			t.Fatal(err)
		}
		if _, err := readPipelineReply(c.replies); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(sent))
	}
	return took
}
