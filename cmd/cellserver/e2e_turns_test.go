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

// endless are scripts that are ended, each in its own way a burden: a plain loop, one that catches what it can, and
// one that leaves garbage.
var endless = []string{
	"while true do end",
	"while true do pcall(function() while true do error('x') end end) end",
	"local t = {} while true do t[1] = {string.rep('x', 100)} end",
	"while true do redis.call('cl.throttle', KEYS[1], 15, 30, 60) end",
}

// TestEndlessScriptsLeaveOthersTheirTurn measures how long a client waits that asks now and then, in phases with and
// without others that send such scripts without a pause. Its p99 should be within twice that of the quiet phases; as
// machines on which tests run are noisy, more is let pass, but not the milliseconds that it takes where scripts
// hold a processor that somebody waits for.
func TestEndlessScriptsLeaveOthersTheirTurn(t *testing.T) {
	rounds, phase := 8, 300*time.Millisecond
	if testing.Short() {
		rounds = 3
	}
	for name, args := range map[string][]string{"default": nil, "io-threads=0": {"--io-threads", "0"}} {
		t.Run(name, func(t *testing.T) {
			p := startServer(t, args...)
			var loopers []net.Conn
			for range endless {
				loopers = append(loopers, p.dial(t))
			}
			polite := newPolite(t, p)
			polite.ask(t, phase) // is not counted
			var quiet, busy []time.Duration
			for range rounds {
				quiet = append(quiet, polite.ask(t, phase)...)
				busy = append(busy, whileLooping(t, loopers, func() []time.Duration { return polite.ask(t, phase) })...)
			}
			slices.Sort(quiet)
			slices.Sort(busy)
			q50, q99, b50, b99 := quantile(quiet, 0.5), quantile(quiet, 0.99), quantile(busy, 0.5), quantile(busy, 0.99)
			t.Logf("quiet p50 %s, p99 %s of %d; busy p50 %s, p99 %s of %d: p99 %.2f times as long",
				q50, q99, len(quiet), b50, b99, len(busy), float64(b99)/float64(q99))
			if isRace() {
				return // what is measured then is the detector
			}
			if b50 > 4*q50+time.Millisecond || b99 > 4*q99+8*time.Millisecond {
				t.Error("others wait for scripts that never end")
			}
		})
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)))]
}

// whileLooping calls do while each of the connections sends one endless script after the other.
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

// polite is a client that asks, and then pauses.
type polite struct {
	nc      net.Conn
	replies *bufio.Reader
}

func newPolite(t *testing.T, p *process) *polite {
	nc := p.dial(t)
	return &polite{nc, bufio.NewReader(nc)}
}

// ask asks for a time, and returns how long each reply took.
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
