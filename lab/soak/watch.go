package main

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// watch calls several servers at once again and again, as a client that finds the leader by trying, and notes
// when it was allowed.
type watch struct {
	request, prefix string
	ctx             context.Context //nolint:containedctx // that of all calls
	stop            context.CancelFunc
	all             sync.WaitGroup

	mu      sync.Mutex             // guards allowed
	allowed map[string][]time.Time // by server, of the replies
}

// watchEvery is the pause between two calls on one server.
const watchEvery = time.Millisecond

// startWatch begins to call. A reply with the prefix is an allowed call.
func startWatch(ctx context.Context, request, prefix string, servers ...string) *watch {
	w := &watch{request: request, prefix: prefix, allowed: map[string][]time.Time{}}
	w.ctx, w.stop = context.WithCancel(ctx)
	for _, addr := range servers {
		w.add(addr)
	}
	return w
}

// add begins to call another server.
func (w *watch) add(addr string) {
	w.all.Go(func() {
		for w.ctx.Err() == nil {
			w.converse(addr)
			time.Sleep(watchEvery)
		}
	})
}

// converse calls until the connection ends.
func (w *watch) converse(addr string) {
	nc, err := new(net.Dialer).DialContext(w.ctx, "tcp", addr)
	if err != nil {
		return
	}
	defer nc.Close()
	defer context.AfterFunc(w.ctx, func() { _ = nc.Close() })()
	in := bufio.NewReader(nc)
	for {
		if _, err := nc.Write([]byte(w.request)); err != nil {
			return
		}
		text, err := readLines(in)
		if err != nil {
			return
		}
		if strings.HasPrefix(text, w.prefix) {
			w.mu.Lock()
			w.allowed[addr] = append(w.allowed[addr], time.Now())
			w.mu.Unlock()
		}
		time.Sleep(watchEvery)
	}
}

// readLines reads a reply of integers, or a line.
func readLines(in *bufio.Reader) (string, error) {
	var text strings.Builder
	for left := 1; left > 0; left-- {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line[0] == '*' {
			left += int(line[1] - '0') // of at most nine
		}
		text.WriteString(line)
	}
	return text.String(), nil
}

// without returns the time without a leader around a fault: from then, or the last call that the old leader
// allowed, to the first one that the new leader allowed. It waits for that.
func (w *watch) without(ctx context.Context, fault time.Time, from, to string) (d time.Duration, ok bool) {
	for began := time.Now(); ; time.Sleep(watchEvery) {
		w.mu.Lock()
		i := slices.IndexFunc(w.allowed[to], fault.Before)
		if i >= 0 {
			first, last := w.allowed[to][i], fault
			for _, at := range w.allowed[from] {
				if at.After(last) && at.Before(first) {
					last = at
				}
			}
			w.mu.Unlock()
			return first.Sub(last), true
		}
		w.mu.Unlock()
		if ctx.Err() != nil || time.Since(began) > answerWithin {
			return 0, false
		}
	}
}

func (w *watch) end() {
	w.stop()
	w.all.Wait()
}

// Requests of watches, and how their replies begin if they are allowed.
const (
	watchThrottle = "CL.THROTTLE watch 1000000 1000000 1\r\n"
	watchAllowed  = "*5\r\n:0\r\n"
	watchIncrease = "INCR watch\r\n"
	watchNumber   = ":"
)
