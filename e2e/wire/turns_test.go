package wire

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/e2e/harness"
	"cellserver/internal/test/resptest"
)

// endless are scripts that must be stopped: a plain loop, one that catches errors, and one that makes
// garbage.
var endless = []string{
	"while true do end",
	"while true do pcall(function() while true do error('x') end end) end",
	"local t = {} while true do t[1] = {string.rep('x', 100)} end",
	"while true do redis.call('cl.throttle', KEYS[1], 15, 30, 60) end",
}

// TestEndlessScriptsLeaveOthersTheirTurn: while clients send endless scripts, another gets many replies a
// script. Waiting times are for the log: on a busy machine they measure the machine. TestScriptsYield covers
// turns.
func TestEndlessScriptsLeaveOthersTheirTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const calls, leastPerScript = 400, 4
	for name, args := range map[string][]string{"default": nil, "io-threads=0": {"--io-threads", "0"}} {
		t.Run(name, func(t *testing.T) {
			p := harness.StartServer(t, append([]string{"--lua-time-limit", "2s"}, args...)...)
			var loopers []net.Conn
			for range endless {
				loopers = append(loopers, p.Dial(t))
			}
			polite := newPolite(t, p)
			quiet := polite.ask(t, calls)
			var busy waits
			ended := whileLooping(t, loopers, func() { busy = polite.ask(t, calls) })
			t.Logf("quiet p50 %s, p99 %s; busy p50 %s, p99 %s; %d scripts have ended meanwhile",
				quiet.quantile(0.5), quiet.quantile(0.99), busy.quantile(0.5), busy.quantile(0.99), ended)
			if ended*leastPerScript > calls {
				t.Errorf("%d calls were answered while %d scripts ended", calls, ended)
			}
		})
	}
}

type waits []time.Duration

func (w waits) quantile(q float64) time.Duration {
	return slices.Sorted(slices.Values(w))[int(q*float64(len(w)))]
}

// whileLooping calls do while each looper sends endless scripts, and returns how many ended.
func whileLooping(t *testing.T, loopers []net.Conn, do func()) (ended int64) {
	stop := make(chan struct{})
	var scripts atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for i, nc := range loopers {
		wg.Go(func() {
			command := resptest.Append(nil, "EVAL", endless[i], "1", "looper")
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
				scripts.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	do()
	return scripts.Load()
}

// polite is a client with pauses.
type polite struct {
	nc      net.Conn
	replies *bufio.Reader
}

func newPolite(t *testing.T, p *harness.Process) *polite {
	nc := p.Dial(t)
	return &polite{nc, bufio.NewReader(nc)}
}

// ask asks repeatedly and returns the waiting times.
func (c *polite) ask(t *testing.T, calls int) (took waits) {
	t.Helper()
	command := resptest.Append(nil, "CL.THROTTLE", "polite", "15", "30", "60")
	for range calls {
		sent := time.Now()
		if _, err := c.nc.Write(command); err != nil {
			t.Fatal(err)
		}
		if _, err := readPipelineReply(c.replies); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(sent))
		time.Sleep(500 * time.Microsecond)
	}
	return took
}
