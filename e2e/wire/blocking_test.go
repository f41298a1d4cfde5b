package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/app"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// hourly is a limit under which no unit leaks during a test.
const hourly = " 0 1 3600 "

// queue holds clients that wait for one key, in order.
type queue struct {
	t        *testing.T
	p        *harness.Process
	control  net.Conn
	clients  []net.Conn
	ids      []string
	answered chan int // numbers of allowed clients
}

// newQueue lets n clients wait in order.
func newQueue(t *testing.T, p *harness.Process, n int, dial func(t *testing.T) net.Conn) *queue {
	q := &queue{t: t, p: p, control: p.Dial(t), answered: make(chan int, n)}
	harness.Exchange(t, q.control, "CL.THROTTLE k"+hourly+"\r\n", resptest.Ints(0, 1, 0, -1, 3600))
	for i := range n {
		nc := dial(t)
		harness.Send(t, nc, "CLIENT ID\r\nCL.BTHROTTLE k"+hourly+"1 0\r\n")
		in := bufio.NewReaderSize(nc, 64)
		id, err := in.ReadString('\n') // sent when the next command waits
		if err != nil {
			t.Fatal(err)
		}
		q.clients, q.ids = append(q.clients, nc), append(q.ids, strings.Trim(id, ":\r\n"))
		go func() {
			if line, err := in.ReadString('\n'); err == nil && line == "*5\r\n" {
				if limited, _ := in.ReadString('\n'); limited == ":0\r\n" {
					q.answered <- i
				}
			}
		}()
	}
	q.isBlocked(n)
	return q
}

func (q *queue) isBlocked(n int) {
	q.t.Helper()
	q.p.Eventually(q.t, fmt.Sprintf("have %d clients blocked", n), func() bool {
		return int(q.p.Metric(q.t, "cellserver_connections_blocked")) == n
	})
}

// refund returns units and reports the clients answered by them.
func (q *queue) refund(units int) (answered []int) {
	q.t.Helper()
	if _, err := fmt.Fprintf(q.control, "CL.REFUND k%s%d\r\n", hourly, units); err != nil {
		q.t.Fatal(err)
	}
	in := bufio.NewReader(q.control)
	for range 6 {
		if _, err := in.ReadString('\n'); err != nil {
			q.t.Fatal(err)
		}
	}
	for len(answered) < units {
		i, ok := patience.Receive(q.answered)
		if !ok {
			q.t.Fatalf("%d are answered of %d", len(answered), units)
		}
		answered = append(answered, i)
	}
	return answered
}

// hours returns the units in the funnel.
func (q *queue) hours() int {
	q.t.Helper()
	if _, err := io.WriteString(q.control, "TTL k\r\n"); err != nil {
		q.t.Fatal(err)
	}
	line, err := bufio.NewReader(q.control).ReadString('\n')
	if err != nil {
		q.t.Fatal(err)
	}
	seconds, _ := strconv.Atoi(strings.Trim(line, ":\r\n"))
	return (seconds + 3599) / 3600
}

// TestClientsThatWait: waiting clients are answered in order. After half of them are killed or disconnect,
// the rest move up, and the funnel has no trace of the others.
func TestClientsThatWait(t *testing.T) {
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t)
		newQueue(t, p, 100, p.Dial).play(t)
	})
}

func TestTenThousandClientsThatWait(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	racetest.OneAtATime(t)
	n := app.FitMaxClients(10_100, 0) - 100 // as permitted by the limit of open files
	if racetest.Enabled {
		n = min(n, 500)
	}
	path := filepath.Join(t.TempDir(), "socket")
	p := harness.StartServer(t, "--unixsocket", path, "--maxclients", strconv.Itoa(n+100))
	before := p.RSS(t)
	q := newQueue(t, p, n, func(t *testing.T) net.Conn {
		return harness.DialUnix(t, path)
	})
	t.Logf("%d bytes of resident memory for each client that waits", (p.RSS(t)-before)/n)
	q.play(t)
}

func (q *queue) play(t *testing.T) {
	waiting := make([]int, len(q.clients))
	for i := range waiting {
		waiting[i] = i
	}
	next := func(n int) {
		t.Helper()
		got := q.refund(n)
		if slices.Sort(got); !slices.Equal(got, waiting[:n]) {
			t.Fatalf("answered %v, want %v", got, waiting[:n])
		}
		waiting = waiting[n:]
	}
	for range 10 {
		next(1)
	}
	for k, i := range waiting {
		switch k % 4 {
		case 0:
			_ = q.clients[i].Close()
		case 2:
			harness.Exchange(t, q.control, "CLIENT KILL ID "+q.ids[i]+"\r\n", ":1\r\n")
		}
	}
	kept := waiting[:0]
	for k, i := range waiting {
		if k%2 == 1 {
			kept = append(kept, i)
		}
	}
	waiting = kept
	q.isBlocked(len(waiting))
	if got := q.hours(); got != 1+len(waiting) {
		t.Errorf("the funnel holds %d units, want %d", got, 1+len(waiting))
	}
	for range 10 {
		next(1)
	}
	next(len(waiting) / 2)
	next(len(waiting))
	q.isBlocked(0)
	if got := q.hours(); got != 1 {
		t.Errorf("afterwards the funnel holds %d units", got)
	}
}

// TestShutdownWhileClientsWait: a shutdown ends waiting clients at once and keeps none of their debits.
func TestShutdownWhileClientsWait(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		dir := t.TempDir()
		p := startServer(t, "--data-dir", dir)
		q := newQueue(t, p, 20, p.Dial)
		waits := p.Dial(t)
		harness.Exchange(t, waits, "PING\r\n", "+PONG\r\n")
		harness.Send(t, waits, "CL.BTHROTTLE k"+hourly+"1 0\r\n")
		q.isBlocked(21)
		p.Stop(t, os.Interrupt)
		if told, _ := io.ReadAll(waits); !strings.HasPrefix(string(told), "-ERR the command was ended before it was done") {
			t.Errorf("got %q", told)
		}
		after := startServer(t, "--data-dir", dir)
		q.control = after.Dial(t)
		if got := q.hours(); got != 1 {
			t.Errorf("the funnel holds %d units", got)
		}
	})
}

// TestClientsThatWaitAreNotIdle: --timeout spares waiting clients.
func TestClientsThatWaitAreNotIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	harness.OnEachDriver(t, func(t *testing.T, startServer harness.Starter) {
		p := startServer(t, "--timeout", "1s")
		nc := p.Dial(t)
		one := resptest.Ints(0, 1, 0, -1, 3)
		harness.Exchange(t, nc, "CL.BTHROTTLE k 0 1 3 1 0\r\nCL.BTHROTTLE k 0 1 3 1 0\r\n", one+one)
	})
}
