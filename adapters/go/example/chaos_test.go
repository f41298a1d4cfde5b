package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestChaos has streams through two proxies, of which clients cut some and the model fails some, while
// cellserver is killed twice and a proxy once. What cellserver says is used has to be what the model has
// charged for, by the model's own ledger.
func TestChaos(t *testing.T) {
	for _, tt := range []struct {
		name, away, fsync string
		failover, exact   bool
		tokens            int64 // of a user
	}{
		{"closed", "closed", "0", false, true, 2_500}, // less than is asked for
		{"local", "local", "0", false, true, 50_000},
		{"local, over budget", "local", "0", false, false, 500}, // not all debits can be repeated
		{"closed, a second", "closed", "1s", false, false, 2_500},
		{"local, a second", "local", "1s", false, false, 50_000},
		{"failover", "closed", "0", true, false, 2_500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			streams := 200
			if testing.Short() {
				streams = 40
			}
			if testing.Short() && !tt.exact {
				t.Skip("the exact ones are enough")
			}
			c := newChaos(t, tt.away, tt.tokens, streams)
			c.servers = &servers{t: t, limits: c.limits, fsync: tt.fsync, failover: tt.failover}
			c.servers.start()
			c.run()
			c.compare(tt.exact)
		})
	}
}

const (
	users      = 8
	localUnits = 20_000 // of a user, in each proxy
)

// stream is what a client does, and what it has seen.
type stream struct {
	call
	cut      int // lines until the client goes; 0 is never
	from, to time.Time
	refused  int
	local    bool
	seen, id string
}

type chaos struct {
	t       *testing.T
	away    string
	servers *servers
	model   *program
	proxies [2]atomic.Pointer[program]
	dir     string
	tokens  int64 // of a user
	limits  string
	seed    uint64
	streams []*stream

	began, running, away503, local, ended atomic.Int64
}

func newChaos(t *testing.T, away string, tokens int64, n int) *chaos {
	dir := t.TempDir()
	c := &chaos{t: t, away: away, dir: dir, limits: filepath.Join(dir, "limits.yaml"), tokens: tokens, seed: seedOf(t)}
	limits(t, c.limits, "max_count: 200000}", fmt.Sprintf("max_count: %d}", tokens))
	keys := strings.Builder{}
	for i := range users {
		fmt.Fprintf(&keys, "sk-user%d org%d user%d\n", i, i%2, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.txt"), []byte(keys.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(c.seed, 0))
	for i := range n {
		user := rng.IntN(users)
		question := fmt.Sprintf("question %d %s", i, strings.Repeat("and on ", rng.IntN(80)))
		s := &stream{call: ask(fmt.Sprintf("org%d/user%d", user%2, user), []string{"small", "large"}[rng.IntN(2)], question, 20+rng.Int64N(80))}
		s.Stream = true
		if rng.IntN(10) == 0 {
			s.cut = 1 + rng.IntN(20)
		}
		c.streams = append(c.streams, s)
	}
	return c
}

func (c *chaos) proxy(i int) *program {
	return start(c.t, "proxy", "-cellserver="+c.servers.addr, "-model=http://"+c.model.addr, "-away="+c.away,
		"-timeout=500ms", "-ttl=20s", "-keys="+filepath.Join(c.dir, "keys.txt"), "-journal="+c.journal(i))
}

func (c *chaos) journal(i int) string { return filepath.Join(c.dir, fmt.Sprintf("holds%d.jsonl", i)) }

func (c *chaos) run() {
	t, n := c.t, int64(len(c.streams))
	c.model = start(t, "model", "-delay=30ms", "-fail=0.05", fmt.Sprintf("-seed=%d", c.seed))
	for i := range c.proxies {
		c.proxies[i].Store(c.proxy(i))
	}
	var clients sync.WaitGroup
	half := n / 2
	for i, s := range c.streams[:half] {
		clients.Go(func() { c.client(i, s) })
	}
	until(t, "the first half", func() bool { return c.began.Load()+c.ended.Load() >= half/2 })
	c.servers.kill()
	for i, s := range c.streams[half:] {
		clients.Go(func() { c.client(i, s) })
	}
	until(t, "calls without cellserver", func() bool { return c.away503.Load()+c.local.Load() >= half/5 })
	c.servers.restart()
	until(t, "answers", func() bool { return c.ended.Load() >= half })
	c.servers.kill()
	ended := c.ended.Load()
	until(t, "settlements that wait", func() bool { return c.ended.Load() >= min(n, ended+n/10) || c.running.Load() == 0 })
	c.proxies[0].Load().kill()
	c.proxies[0].Store(c.proxy(0))
	c.servers.restart()
	clients.Wait()
	for i := range c.proxies {
		until(t, "open holds", func() bool { return len(c.openHolds(i)) == 0 })
		c.proxies[i].Load().stop()
	}
}

// client calls until there is an answer.
func (c *chaos) client(i int, s *stream) {
	s.from = time.Now()
	defer func() { s.to = time.Now(); c.ended.Add(1) }()
	for {
		ctx, cancel := context.WithCancel(c.t.Context())
		again := c.once(ctx, i, s)
		cancel()
		if !again {
			return
		}
		s.refused++
		c.away503.Add(1)
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *chaos) once(ctx context.Context, i int, s *stream) (again bool) {
	r, err := post(ctx, c.proxies[i%2].Load().addr, s.call)
	if err != nil {
		s.seen = "broken"
		return false
	}
	defer func() { _ = r.Body.Close() }()
	if s.seen = r.Status; r.StatusCode != http.StatusOK {
		return r.StatusCode == http.StatusServiceUnavailable
	}
	c.began.Add(1)
	c.running.Add(1)
	defer c.running.Add(-1)
	if s.local = r.Header.Get("X-Ratelimit-Limit-Tokens") == fmt.Sprint(localUnits); s.local {
		c.local.Add(1)
	}
	lines, n := bufio.NewScanner(r.Body), 0
	s.seen = "broken"
	for lines.Scan() {
		n++
		if _, id, ok := strings.Cut(lines.Text(), `"id":"`); ok {
			s.id, _, _ = strings.Cut(id, `"`)
		}
		if lines.Text() == "data: [DONE]" {
			s.seen = "answered"
		} else if strings.Contains(lines.Text(), "the model has failed") {
			s.seen = "failed"
		} else if n == s.cut {
			s.seen = "cut"
			return false
		}
	}
	return false
}

// holds calls each with the lines of a proxy's journal.
func (c *chaos) holds(i int, each func(id string, units []int64, settled bool)) {
	b, err := os.ReadFile(c.journal(i))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e struct {
			ID      string
			Settled bool
			Uses    []struct{ Units int64 }
		}
		if json.Unmarshal([]byte(line), &e) == nil {
			units := []int64{}
			for _, u := range e.Uses {
				units = append(units, u.Units)
			}
			each(e.ID, units, e.Settled)
		}
	}
}

func (c *chaos) openHolds(i int) map[string]bool {
	open := map[string]bool{}
	c.holds(i, func(id string, _ []int64, settled bool) {
		if open[id] = true; settled {
			delete(open, id)
		}
	})
	return open
}

// compare compares the model's ledger with what cellserver says.
func (c *chaos) compare(exact bool) {
	t, held := c.t, map[string][]int64{}
	for i := range c.proxies {
		c.holds(i, func(id string, units []int64, _ bool) { held[id] = units })
	}
	want, excess := map[string]int64{}, map[string]int64{}
	charges := ledger(t, c.model.addr)
	for id, charge := range charges {
		org, _, _ := strings.Cut(charge.User, "/")
		costs := []int64{charge.tokens(), charge.tokens(), charge.tokens(), charge.millionths()}
		for i, key := range []string{
			"org-tokens " + org, "user-tokens " + charge.User, "model-tokens " + org + "/" + charge.Model, "org-spend " + org,
		} {
			if want[key] += costs[i]; len(held[id]) > 0 {
				excess[key] += max(0, costs[i]-held[id][i])
			} else if costs[i] > 0 {
				t.Errorf("the journal has no hold %s", id)
			}
		}
	}
	// With room for all, what is left tells what is used.
	limits(t, c.limits, "max_count: ", "max_count: 1000")
	s := c.servers.now
	s.Do(t, "cl.limit reload")
	got, differs := map[string]int64{}, int64(0)
	differ := func() bool {
		differs = 0
		for key, n := range want {
			name, of, _ := strings.Cut(key, " ")
			got[key] = used(t, s, name, of)
			if name == "org-tokens" {
				differs += max(n-got[key], got[key]-n)
			}
		}
		return !maps.Equal(got, want)
	}
	// No proxy runs, so nothing comes but the ends of holds whose answers were lost.
	const ttl = 20 * time.Second
	for end := time.Now().Add(ttl + time.Second); differ() && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	bound := c.bound(charges)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			say := t.Logf
			if exact {
				say = t.Errorf
			}
			say("%s: cellserver says %d, the model %d", key, got[key], want[key])
		}
		if room := c.room(exact, bound); strings.HasPrefix(key, "user-") && want[key] > room+excess[key] {
			t.Errorf("%s: %d of %d, with an excess of %d", key, want[key], room, excess[key])
		}
	}
	if differs > bound {
		t.Errorf("tokens differ by %d, more than %d", differs, bound)
	}
	c.tell(want, differs, bound)
}

// room returns the most that a user may spend.
func (c *chaos) room(exact bool, bound int64) (tokens int64) {
	tokens = c.tokens
	if c.away == "local" {
		tokens += int64(len(c.proxies)) * localUnits
	}
	if !exact {
		tokens += bound
	}
	return tokens
}

// bound returns the tokens of the streams that may have been settled in the second before a kill, or held by
// the proxy that was killed.
func (c *chaos) bound(charges map[string]charge) (tokens int64) {
	const most, slack = 300, 1500 * time.Millisecond // of a prompt; of a settlement, and of the server's round on a busy machine
	for _, s := range c.streams {
		for _, at := range c.servers.kills {
			near := c.servers.settledBy(s.to).After(at.Add(-time.Second-slack)) && s.to.Before(at.Add(slack))
			if !near && s.cut == 0 && s.seen != "broken" || s.from.After(at) || strings.HasPrefix(s.seen, "429") {
				continue
			}
			if charge, ok := charges[s.id]; ok {
				tokens += charge.tokens()
			} else {
				tokens += most + s.MaxTokens
			}
			break
		}
	}
	return tokens
}

func (c *chaos) tell(want map[string]int64, differs, bound int64) {
	seen, refused, tokens := map[string]int{}, 0, int64(0)
	for _, s := range c.streams {
		seen[s.seen]++
		refused += s.refused
	}
	for key, n := range want {
		if strings.HasPrefix(key, "org-tokens") {
			tokens += n
		}
	}
	c.t.Logf("%d streams: %v; %d counted locally, %d refusals without cellserver", len(c.streams), seen, c.local.Load(), refused)
	c.t.Logf("%d tokens; cellserver differs by %d; at most %d could be lost without an fsync for each change", tokens, differs, bound)
}
