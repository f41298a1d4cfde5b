package values

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	longestBatch = 64
	ownKeys      = 300  // of a client, half of them counters
	shortKeys    = 1000 // of a client, the last ones
	// slack is between a client's clock and those of the servers.
	slack = 20 * time.Millisecond
)

// Count is what clients did. It is safe for concurrent use.
type Count struct{ Calls, InExec, Expired, Tolerated atomic.Int64 }

// Compare makes calls at both servers and compares the replies. Each client has keys of its own.
func Compare(ctx context.Context, addrs [2]string, random *rand.Rand, client, calls int, count *Count) error {
	c := &comparer{random: random, prefix: fmt.Sprintf("c%d:", client), count: count}
	for i, addr := range addrs {
		var err error
		if c.conns[i], err = dial(ctx, addr); err != nil {
			return err
		}
		defer c.conns[i].nc.Close()
	}
	for made := 0; made < calls && ctx.Err() == nil; made += len(c.batch) {
		c.batch = c.batch[:0]
		for n := 1 + random.IntN(longestBatch); len(c.batch) < n; {
			c.add()
		}
		if err := c.converse(); err != nil {
			return err
		}
	}
	return c.finish()
}

type comparer struct {
	random  *rand.Rand
	prefix  string
	count   *Count
	conns   [2]*conn
	batch   []call
	shorts  []*short
	named   int
	longest time.Duration // of a batch
}

// call is a call with what its reply depends on.
type call struct {
	args   []string
	ofTime bool   // the reply is a time
	of     *short // read by it, or nil
	makes  *short // made by it, or nil
	exec   []call // those that EXEC executes
}

// short is a key that expires soon. After that it is not used again.
type short struct {
	name           string
	ttl            time.Duration
	made, answered time.Time // its expiry is ttl after a time between them
	unsure         bool      // it may have expired before it was renamed to this
}

// mayBe reports whether the key may have been there, and whether it may have been gone, during a batch.
func (s *short) mayBe(began, ended time.Time) (there, gone bool) {
	return began.Before(s.answered.Add(s.ttl + slack)), s.unsure || ended.After(s.made.Add(s.ttl-slack))
}

// add appends a call, or a transaction of several.
func (c *comparer) add() {
	if c.random.IntN(20) > 0 {
		c.batch = append(c.batch, c.call())
		return
	}
	exec := call{args: []string{"EXEC"}}
	c.batch = append(c.batch, call{args: []string{"MULTI"}})
	for range 1 + c.random.IntN(6) {
		q := c.call()
		exec.exec = append(exec.exec, q)
		c.batch = append(c.batch, call{args: q.args})
	}
	c.batch = append(c.batch, exec)
}

func (c *comparer) call() call {
	switch n := c.random.IntN(10); {
	case n == 0:
		return c.makeShort()
	case n < 3 && len(c.shorts) > 0:
		return c.useShort()
	}
	words := strings.Fields(calls()[c.random.IntN(len(calls()))])
	for i, word := range words {
		switch word {
		case "N": // a counter's key
			words[i] = c.prefix + "n" + strconv.Itoa(c.random.IntN(ownKeys/2))
		case "K":
			words[i] = c.prefix + "k" + strconv.Itoa(c.random.IntN(ownKeys/2))
		case "V":
			words[i] = strings.Repeat(strconv.Itoa(c.random.IntN(1e6)), c.random.IntN(30))
		case "I":
			words[i] = strconv.FormatInt(int64(c.random.Uint64())>>(20+c.random.IntN(40)), 10) //nolint:gosec // its sign is random
		case "F":
			words[i] = strconv.FormatFloat(c.random.NormFloat64()*1000, 'f', c.random.IntN(17), 64)
		case "T": // later than the end
			words[i] = strconv.Itoa(1e8 + c.random.IntN(1e9))
		}
	}
	return call{args: words, ofTime: strings.HasSuffix(words[0], "TTL") || strings.HasSuffix(words[0],
		"TIME")}
}

func calls() []string {
	return []string{"SET K V", "SET K V", "SET K V PX T", "SET K V NX GET", "SET K V XX KEEPTTL", "GET K",
		"GET K", "GETDEL K", "GETEX K PX T", "GETEX K PERSIST",
		"SETNX K V", "SETEX K T V", "PSETEX K T V", "MSET K V K V", "MSETNX K V K V", "GETSET K V", "MGET K N K", "STRLEN K", "TYPE K",
		"OBJECT ENCODING K", "DUMP K", "DUMP N",
		"INCR N", "INCR N", "INCR N", "DECR N", "INCRBY N I", "DECRBY N I", "INCRBYFLOAT K F", "SET N I",
		"GET N", "GETDEL N", "SET N I PX T GET",
		"RENAME K K", "RENAME N N", "RENAMENX K K", "EXPIRE K T", "PEXPIRE N T XX", "PERSIST K", "PTTL K",
		"TTL N", "PEXPIRETIME K", "EXISTS K K N", "DEL K K", "UNLINK N"}
}

// makeShort makes a key that expires soon, in one of the ways that limiters have.
func (c *comparer) makeShort() call {
	s := &short{name: c.prefix + "s" + strconv.Itoa(c.named),
		ttl: time.Duration(1+c.random.IntN(500)) * time.Millisecond}
	c.named++
	ms := strconv.FormatInt(s.ttl.Milliseconds(), 10)
	ways := [][]string{
		{"SET", s.name, "x", "PX", ms}, {"SET", s.name, "1", "NX", "PX", ms}, {"PSETEX", s.name, ms, "x"},
		{"EVAL",
			"local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n", "1", s.name, ms},
	}
	c.remember(s)
	return call{args: ways[c.random.IntN(len(ways))], makes: s}
}

func (c *comparer) remember(s *short) {
	if c.shorts = append(c.shorts, s); len(c.shorts) > shortKeys {
		c.shorts = slices.Delete(c.shorts, 0, 1)
	}
}

// useShort reads a key that expires soon, or renames it.
func (c *comparer) useShort() call {
	i := c.random.IntN(len(c.shorts))
	s := c.shorts[i]
	switch c.random.IntN(6) {
	case 0:
		return call{args: []string{"PTTL", s.name}, of: s, ofTime: true}
	case 1:
		return call{args: []string{"EXISTS", s.name}, of: s}
	case 2:
		renamed := &short{name: c.prefix + "s" + strconv.Itoa(c.named), ttl: s.ttl}
		c.named++
		c.shorts[i] = renamed
		return call{args: []string{"RENAME", s.name, renamed.name}, of: s, makes: renamed}
	}
	return call{args: []string{"GET", s.name}, of: s}
}

// converse makes the batch's calls at both servers and compares the replies.
func (c *comparer) converse() error {
	all := make([][]string, len(c.batch))
	for i := range c.batch {
		all[i] = c.batch[i].args
	}
	var replies [2][]reply
	var errs [2]error
	began := time.Now()
	var asking sync.WaitGroup
	for i := range c.conns {
		asking.Go(func() { replies[i], errs[i] = c.conns[i].do(all...) })
	}
	asking.Wait()
	ended := time.Now()
	c.longest = max(c.longest, ended.Sub(began))
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", c.conns[i].nc.RemoteAddr(), err)
		}
	}
	for i, q := range c.batch {
		if err := c.compare(q, replies[0][i], replies[1][i], began, ended); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparer) compare(q call, ours, other reply, began, ended time.Time) error {
	if len(q.exec) > 0 && len(ours.elems) == len(q.exec) && len(other.elems) == len(q.exec) {
		c.count.InExec.Add(int64(len(q.exec)))
		for i, queued := range q.exec {
			if err := c.compare(queued, ours.elems[i], other.elems[i], began, ended); err != nil {
				return fmt.Errorf("in EXEC: %w", err)
			}
		}
		return nil
	}
	c.count.Calls.Add(1)
	there, gone := true, false
	if q.of != nil {
		there, gone = q.of.mayBe(began, ended)
	}
	switch {
	case q.makes != nil && q.of != nil: // renamed
		*q.makes = short{name: q.makes.name, ttl: q.of.ttl, made: q.of.made, answered: q.of.answered,
			unsure: gone}
	case q.makes != nil:
		q.makes.made, q.makes.answered = began, ended
	}
	if !there {
		c.count.Expired.Add(1)
	}
	switch {
	case equal(ours, other):
	case there && gone:
		c.count.Tolerated.Add(1)
	case q.ofTime && near(ours, other, 2*c.longest+slack): // one server may be late to set it, and the other to read it
	default:
		return fmt.Errorf("%.200q: %s and at redis-server %s", q.args, ours, other)
	}
	return nil
}

// near reports whether both replies are times, in seconds or milliseconds, that differ by that much at most.
func near(a, b reply, most time.Duration) bool {
	n, err := strconv.ParseInt(strings.TrimPrefix(a.line, ":"), 10, 64)
	m, err2 := strconv.ParseInt(strings.TrimPrefix(b.line, ":"), 10, 64)
	return err == nil && err2 == nil && n > 0 && m > 0 && max(n-m, m-n) <= 1+most.Milliseconds()
}

// finish compares what all keys have at the end.
func (c *comparer) finish() error {
	var last time.Time
	for _, s := range c.shorts {
		if expiry := s.answered.Add(s.ttl + slack); expiry.After(last) {
			last = expiry
		}
	}
	time.Sleep(time.Until(last))
	c.batch = nil
	for _, s := range c.shorts {
		c.batch = append(c.batch, call{args: []string{"EXISTS", s.name}, of: s})
	}
	for i := range ownKeys / 2 {
		for _, name := range []string{c.prefix + "n" + strconv.Itoa(i), c.prefix + "k" + strconv.Itoa(i)} {
			c.batch = append(c.batch, call{args: []string{"GET", name}}, call{args: []string{"DUMP", name}})
		}
	}
	return c.converse()
}
