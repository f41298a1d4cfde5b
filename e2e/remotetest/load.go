package remotetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Load is clients that call one key after another until the context ends.
type Load struct {
	Servers []string // shared by the clients
	Clients int
	Keys    []string
	Limits  []Limit // by key, or one for all
	// Pick draws a key; nil draws uniformly.
	Pick func(*rand.Rand) int
	// Pause precedes a client's next call.
	Pause time.Duration
}

// Record is the clients' observations.
type Record struct {
	Began time.Time
	Took  time.Duration
	Calls [][]Call // by key, unordered
	// Errors counts error replies by text.
	Errors map[string]int
}

// patience bounds a call. Beyond it the test fails.
const patience = time.Minute

// nothingCharged ends the error of a call that the store has not executed.
const nothingCharged = "; nothing was charged"

func (l *Load) Limit(key int) Limit { return l.Limits[min(key, len(l.Limits)-1)] }

// Run calls until ctx ends. It returns connections' errors; error replies are recorded.
func (l *Load) Run(ctx context.Context) (*Record, error) {
	clients := make([]*client, l.Clients)
	requests := l.requests()
	for i := range clients {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Servers[i%len(l.Servers)])
		if err != nil {
			return nil, fmt.Errorf("remotetest: %w", err)
		}
		defer conn.Close()
		clients[i] = &client{
			load: l, conn: conn, in: bufio.NewReader(conn), requests: requests, calls: make([][]Call, len(l.Keys)),
			errors: map[string]int{}, random: rand.New(rand.NewPCG(uint64(i), 1)), //nolint:gosec // a load needs no secrets
		}
	}
	r := &Record{Began: time.Now(), Calls: make([][]Call, len(l.Keys)), Errors: map[string]int{}}
	failed := make([]error, len(clients))
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() { failed[i] = c.run(ctx, r.Began) })
	}
	running.Wait()
	r.Took = time.Since(r.Began)
	for _, c := range clients {
		for key, calls := range c.calls {
			r.Calls[key] = append(r.Calls[key], calls...)
		}
		for text, n := range c.errors {
			r.Errors[text] += n
		}
	}
	return r, errors.Join(failed...)
}

// For runs for a duration.
func (l *Load) For(ctx context.Context, d time.Duration) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return l.Run(ctx)
}

func (l *Load) requests() [][]byte {
	requests := make([][]byte, len(l.Keys))
	for i, key := range l.Keys {
		limit := l.Limit(i)
		words := []string{"CL.THROTTLE", key}
		for _, n := range []int64{limit.MaxBurst, limit.Count, limit.PeriodSeconds, 1} {
			words = append(words, strconv.FormatInt(n, 10))
		}
		b := []byte("*" + strconv.Itoa(len(words)) + "\r\n")
		for _, w := range words {
			b = append(b, "$"+strconv.Itoa(len(w))+"\r\n"+w+"\r\n"...)
		}
		requests[i] = b
	}
	return requests
}

// client is a connection with sequential calls.
type client struct {
	load     *Load
	conn     net.Conn
	in       *bufio.Reader
	requests [][]byte
	random   *rand.Rand

	calls  [][]Call
	errors map[string]int
}

func (c *client) run(ctx context.Context, began time.Time) error {
	for ctx.Err() == nil {
		key := c.pick()
		call, err := c.call(key, began)
		if err != nil {
			return fmt.Errorf("remotetest: %s: %w", c.conn.RemoteAddr(), err)
		}
		c.calls[key] = append(c.calls[key], call)
		if c.load.Pause > 0 {
			time.Sleep(c.load.Pause)
		}
	}
	return nil
}

func (c *client) pick() int {
	if c.load.Pick != nil {
		return c.load.Pick(c.random)
	}
	return c.random.IntN(len(c.load.Keys))
}

func (c *client) call(key int, began time.Time) (call Call, err error) {
	call.Sent = time.Since(began)
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	if _, err = c.conn.Write(c.requests[key]); err != nil {
		return call, err
	}
	line, err := c.line()
	if err != nil {
		return call, err
	}
	if line[0] == '-' {
		call.Replied = time.Since(began)
		if call.Outcome = Failed; strings.HasSuffix(line, nothingCharged) {
			call.Outcome = Uncharged
		}
		c.errors[line[1:]]++
		return call, nil
	}
	if line != "*5" {
		return call, fmt.Errorf("the reply begins with %q", line)
	}
	for i := range 5 {
		if line, err = c.line(); err != nil {
			return call, err
		}
		if i == 0 && line == ":1" {
			call.Outcome = Limited
		} else if i == 0 && line != ":0" {
			return call, fmt.Errorf("limited is %q", line)
		}
	}
	call.Replied = time.Since(began)
	return call, nil
}

func (c *client) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	if line = strings.TrimSuffix(line, "\r\n"); line == "" {
		return "", errors.New("an empty line")
	}
	return line, nil
}

// Longest returns the longest duration of a call.
func (r *Record) Longest() (longest time.Duration) {
	for _, calls := range r.Calls {
		for _, c := range calls {
			longest = max(longest, c.Replied-c.Sent)
		}
	}
	return longest
}

// Total returns the number of calls with an outcome.
func (r *Record) Total(outcome Outcome) (n int64) {
	for _, calls := range r.Calls {
		n += Count(calls, outcome)
	}
	return n
}
