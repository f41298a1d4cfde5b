package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellserver/e2e/harness"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
	"cellserver/internal/test/resptest"
)

const callsPerStream = 250

// TestValuesAsRedis sends the same random calls of the commands of values to redis-server and cellserver,
// over two connections in turn, pipelined. All replies must be equal, times nearly. The control is a second
// redis-server. Of INCREX, which redis-server 7.0 does not have, the other side is a likeness in Lua.
func TestValuesAsRedis(t *testing.T) {
	t.Parallel()
	streams := 400
	if racetest.OmitsLong() {
		streams = 100
	}
	seed := randtest.Seed(t, 1)
	for name, test := range map[string]struct {
		streams int
		start   func(*testing.T, ...string) *harness.Process
		args    []string
	}{
		"cellserver": {streams, harness.StartServer, nil},
		"control":    {streams / 10, harness.StartRedis, []string{"--protected-mode", "no"}}, // clients have addresses of their own
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pair{ours: test.start(t, test.args...), redis: harness.StartRedis(t)}
			for i := range test.streams {
				s := &valueStream{pair: p, maker: newValueMaker(seed, uint64(i)), isControl: name == "control"}
				if err := s.run(t); err != nil { // a cause of later failures
					t.Fatalf("%s=%d, stream %d: %v", randtest.Env, seed, i, err)
				}
			}
		})
	}
}

// valueStream is one conversation over two twins, which begins without keys.
type valueStream struct {
	*pair
	isControl bool // ours has no INCREX
	maker     *valueMaker
	conns     [2]*twin
	history   []string
}

func (s *valueStream) run(t *testing.T) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nafter:\n%s", err, strings.Join(s.history[max(0, len(s.history)-60):], "\n"))
		}
	}()
	for i := range s.conns {
		s.conns[i] = s.dial(t.Fatal)
		defer s.conns[i].close()
		hello := []string{"HELLO", s.maker.pick("2", "3")}
		for _, h := range []*half{&s.conns[i].ours, &s.conns[i].redis} {
			if got, err := h.do(hello...); err != nil || got.typ == '-' {
				return fmt.Errorf("%q: %s %w", hello, got, err)
			}
		}
	}
	if err := s.converse(s.conns[0], []string{"FLUSHALL"}); err != nil {
		return err
	}
	for calls := 0; calls < callsPerStream; {
		c := s.conns[s.maker.IntN(2)]
		batch := make([][]string, 1+s.maker.IntN(20))
		for i := range batch {
			batch[i] = s.step(c)
		}
		if err := s.converse(c, batch...); err != nil {
			return err
		}
		calls += len(batch)
	}
	return s.finish()
}

// step returns the next call of a connection.
func (s *valueStream) step(c *twin) []string {
	switch n := s.maker.IntN(100); {
	case n < 3:
		c.multi = true
		return []string{"MULTI"}
	case n < 15 && c.multi, n < 4:
		c.multi = false
		return []string{s.maker.pick("EXEC", "EXEC", "EXEC", "DISCARD")}
	case n < 7:
		return []string{"WATCH", s.maker.key(), s.maker.key()}
	case n < 8:
		return []string{"UNWATCH"}
	case n < 9:
		return []string{"SELECT", s.maker.pick("0", "0", "1")}
	}
	return s.maker.call(c.multi)
}

// finish ends transactions and compares all that the keys have.
func (s *valueStream) finish() error {
	for _, c := range s.conns {
		if err := s.converse(c, []string{"DISCARD"}); err != nil {
			return err
		}
	}
	for _, db := range []string{"0", "1"} {
		batch := [][]string{{"SELECT", db}, {"DBSIZE"}}
		for _, key := range []string{"a", "b", "key:1", "", "\x00\xff\r\n"} {
			for _, name := range []string{"GET", "PEXPIRETIME", "TYPE", "DUMP"} {
				batch = append(batch, []string{name, key})
			}
			batch = append(batch, []string{"OBJECT", "ENCODING", key})
		}
		if err := s.converse(s.conns[0], batch...); err != nil {
			return err
		}
	}
	return nil
}

// converse sends calls to both servers at once and compares the replies.
func (s *valueStream) converse(c *twin, calls ...[]string) error {
	var ours, redis []byte
	for _, call := range calls {
		as, _ := asIncrexInLua(call)
		redis = resptest.Append(redis, as...)
		if !s.isControl {
			as = call
		}
		ours = resptest.Append(ours, as...)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _, _ = c.ours.Write(ours) }) // an error is the reader's, too
	wg.Go(func() { _, _ = c.redis.Write(redis) })
	for _, call := range calls {
		s.history = append(s.history, fmt.Sprintf("%p: %.200q", c, call))
		ours, err := c.ours.read()
		if err != nil {
			return fmt.Errorf("%.200q: %w", call, err)
		}
		redis, err := c.redis.read()
		if err != nil {
			return fmt.Errorf("%.200q at Redis: %w", call, err)
		}
		s.history[len(s.history)-1] += " " + shorten(redis.String())
		if err := compareValues(c, call, ours, redis); err != nil {
			return err
		}
		c.track(call, redis)
		if strings.EqualFold(call[0], "dump") && redis.typ == '$' && !redis.null {
			s.maker.dumped = redis.text
		}
	}
	return nil
}

// track follows the connection's transaction.
func (c *twin) track(call []string, reply value) {
	switch name := strings.ToLower(call[0]); {
	case reply.typ == '+' && reply.text == "QUEUED":
		c.queued = append(c.queued, call)
	case name == "exec", name == "discard":
		c.queued = nil
	}
}

// compareValues compares replies, and EXEC's one by one.
func compareValues(c *twin, call []string, ours, redis value) error {
	if n := len(redis.elems); strings.EqualFold(call[0],
		"exec") && n > 0 && n == len(c.queued) && n == len(ours.elems) {
		for i, queued := range c.queued {
			if err := compareValues(c, queued, ours.elems[i], redis.elems[i]); err != nil {
				return fmt.Errorf("in EXEC: %w", err)
			}
		}
		return nil
	}
	a, b := ours, redis
	if a.String() != b.String() {
		a, b = nested(a, b, escaped)
		a, b = nested(a, b, capped)
		if _, other := asIncrexInLua(call); other {
			a, b = nested(a, b, evenIncrex)
		}
		if times().MatchString(strings.Join(call, " ")) {
			a, b = nested(a, b, near)
		}
	}
	if a.String() == b.String() {
		return nil
	}
	return fmt.Errorf("%.200q\nours    %s\nRedis's %s", call, fromDifference(a.String(), b.String()),
		fromDifference(b.String(), a.String()))
}

// capped equalizes the reply of a script for 2^63, the largest integer as Lua has it: Redis's is what the
// processor makes of that, here the least.
func capped(ours, redis value) (value, value) {
	if ours.String() == ":\"9223372036854775807\"" && redis.String() == ":\"-9223372036854775808\"" {
		return ours, ours
	}
	return ours, redis
}

// nested equalizes replies and their elements.
func nested(ours, redis value, even func(ours, redis value) (value, value)) (value, value) {
	if len(ours.elems) != len(redis.elems) {
		return ours, redis
	}
	ours.elems, redis.elems = slices.Clone(ours.elems), slices.Clone(redis.elems)
	for i := range ours.elems {
		ours.elems[i], redis.elems[i] = nested(ours.elems[i], redis.elems[i], even)
	}
	return even(ours, redis)
}

// times matches the calls whose replies have times.
func times() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(p?ttl|p?expiretime)\b`) }

// TestFloatsAsRedis adds random pairs of numbers by INCRBYFLOAT.
func TestFloatsAsRedis(t *testing.T) {
	t.Parallel()
	pairs := 100_000
	if racetest.OmitsLong() {
		pairs = 20_000
	}
	if racetest.IsQuick() {
		pairs = 5_000
	}
	const batch = 250
	seed := randtest.Seed(t, 1)
	p := &pair{ours: harness.StartServer(t), redis: harness.StartRedis(t)}
	s := &valueStream{pair: p, maker: newValueMaker(seed, 0)}
	c := p.dial(t.Fatal)
	defer c.close()
	for range pairs / batch {
		var calls [][]string
		for range batch {
			calls = append(calls, []string{"SET", "f", floatText(s.maker.Rand)}, []string{"INCRBYFLOAT",
				"f", floatText(s.maker.Rand)})
		}
		if err := s.converse(c, calls...); err != nil {
			t.Fatal(err)
		}
	}
}
