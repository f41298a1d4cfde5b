package session_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// model is a server that executes one command after another: keys, and sessions with transactions.
type model struct {
	nowNs    int64
	tats     map[modelKey]int64
	sessions []*modelSession
}

type modelKey struct {
	db   int
	name string
}

type modelSession struct {
	db      int
	multi   bool
	failed  bool
	dirty   bool
	queued  []string
	watched map[modelKey]int64 // their expiry, or 0 if absent
}

func (m *model) live(k modelKey) bool { return m.tats[k] > m.nowNs }

// changed marks the watches of a key.
func (m *model) changed(k modelKey) {
	for _, s := range m.sessions {
		if _, watches := s.watched[k]; watches {
			s.dirty = true
		}
	}
}

func (m *model) do(s *modelSession, command string) string {
	name, arg, _ := strings.Cut(command, " ")
	switch {
	case name == "EXEC":
		return m.exec(s)
	case name == "NOSUCH":
		s.failed = s.multi
		return "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
	case name == "DISCARD" && !s.multi:
		return "-ERR DISCARD without MULTI\r\n"
	case name == "DISCARD":
		*s = modelSession{db: s.db}
		return "+OK\r\n"
	case name == "MULTI" && s.multi:
		return "-ERR MULTI calls can not be nested\r\n"
	case name == "WATCH" && s.multi:
		return "-ERR WATCH inside MULTI is not allowed\r\n"
	case s.multi:
		s.queued = append(s.queued, command)
		return "+QUEUED\r\n"
	case name == "MULTI":
		s.multi = true
		return "+OK\r\n"
	case name == "WATCH":
		m.watch(s, modelKey{s.db, arg})
		return "+OK\r\n"
	}
	return m.execute(s, name, arg)
}

func (m *model) watch(s *modelSession, k modelKey) {
	if _, watches := s.watched[k]; watches {
		return
	}
	if s.watched == nil {
		s.watched = map[modelKey]int64{}
	}
	s.watched[k] = 0
	if m.live(k) {
		s.watched[k] = m.tats[k]
	}
}

func (m *model) exec(s *modelSession) string {
	was := *s
	*s = modelSession{db: s.db}
	switch {
	case !was.multi:
		*s = was
		return "-ERR EXEC without MULTI\r\n"
	case was.failed:
		return execAborted
	}
	for _, until := range was.watched {
		was.dirty = was.dirty || until != 0 && until <= m.nowNs
	}
	if was.dirty {
		return "*-1\r\n"
	}
	reply := "*" + strconv.Itoa(len(was.queued)) + "\r\n"
	for _, command := range was.queued {
		name, arg, _ := strings.Cut(command, " ")
		reply += m.execute(s, name, arg)
	}
	return reply
}

func (m *model) execute(s *modelSession, name, arg string) string {
	k := modelKey{s.db, arg}
	count := func(yes bool) string {
		if yes {
			return ":1\r\n"
		}
		return ":0\r\n"
	}
	switch name {
	case "UNWATCH":
		s.watched, s.dirty = nil, false
	case "SELECT":
		s.db, _ = strconv.Atoi(arg)
	case "FLUSHDB":
		for k := range m.tats {
			if k.db == s.db {
				m.remove(k)
			}
		}
	case "EXISTS":
		return count(m.live(k))
	case "DEL":
		return count(m.remove(k))
	case "DBSIZE":
		n := 0
		for k := range m.tats {
			if k.db == s.db && m.live(k) {
				n++
			}
		}
		return fmt.Sprintf(":%d\r\n", n)
	case "CL.THROTTLE":
		name, _, _ := strings.Cut(arg, " ")
		return m.throttle(modelKey{s.db, name})
	case "EVAL":
		return m.throttle(modelKey{s.db, arg[strings.LastIndexByte(arg, ' ')+1:]})
	}
	return "+OK\r\n"
}

func (m *model) remove(k modelKey) (lived bool) {
	if lived = m.live(k); lived {
		m.changed(k)
	}
	delete(m.tats, k)
	return lived
}

func (m *model) throttle(k modelKey) string {
	limit, _ := funnel.NewLimit(funnel.Burst, 3, 1, 10)
	tat, r := limit.Throttle(max(m.tats[k], m.nowNs), m.nowNs, 1)
	if !r.Limited {
		m.tats[k] = tat
		m.changed(k)
	}
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	return resptest.Ints(limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter)
}

// TestTransactionsFollowTheModel in random pipelines of several sessions in turn.
func TestTransactionsFollowTheModel(t *testing.T) {
	const sessions, steps = 4, 400
	const interpreted = `EVAL "do end return redis.call('cl.throttle', KEYS[1], 3, 1, 10)" 1 `
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(4, seed))
		r := commandstest.New()
		m := &model{nowNs: commandstest.T0, tats: map[modelKey]int64{}}
		var all []*commandstest.Client
		for range sessions {
			all = append(all, r.Session())
			m.sessions = append(m.sessions, &modelSession{})
		}
		command := func() string {
			key := string('a' + rune(rng.IntN(3)))
			return []string{
				"MULTI", "MULTI", "EXEC", "EXEC", "EXEC", "DISCARD", "UNWATCH", "NOSUCH", "SELECT " + strconv.Itoa(rng.IntN(2)),
				"FLUSHDB", "DBSIZE", "WATCH " + key, "WATCH " + key, "EXISTS " + key, "DEL " + key,
				"CL.THROTTLE " + key + " 3 1 10", "CL.THROTTLE " + key + " 3 1 10", interpreted + key,
			}[rng.IntN(18)]
		}
		for step := range steps {
			i := rng.IntN(sessions)
			var in, want strings.Builder
			for range 1 + rng.IntN(5) {
				c := command()
				in.WriteString(c + "\r\n")
				want.WriteString(m.do(m.sessions[i], c))
			}
			if got := commandstest.Say(t, all[i], in.String()); got != want.String() {
				t.Fatalf("seed %d, step %d, session %d: %q got %q, want %q", seed, step, i, in.String(), got, want.String())
			}
			if rng.IntN(8) == 0 {
				ns := rng.Int64N(15 * commandstest.Sec)
				r.Clock.Advance(ns)
				m.nowNs += ns
			}
		}
	}
}

// TestTransactionsAreAtomic: sessions move units in and out of two keys in every way while others read: both
// keys are always equal, and nothing is lost.
func TestTransactionsAreAtomic(t *testing.T) {
	const rounds = 150
	const call = "CL.THROTTLE %s 1000000 1 1 %d\r\n"
	const script = "redis.call('cl.throttle', KEYS[1], 1000000, 1, 1, ARGV[1]) for i = 1, 2000 do end " +
		"redis.call('cl.throttle', KEYS[2], 1000000, 1, 1, ARGV[1]) return 'moved'"
	r := commandstest.New(func(c *commands.Config) { c.BackgroundThreads = 4 })
	both := func(units int) string { return fmt.Sprintf(call, "a", units) + fmt.Sprintf(call, "b", units) }
	var mu sync.Mutex // guards moved
	moved := 0
	look := func(between string) func(*commandstest.Client, int) (string, int) {
		return func(s *commandstest.Client, _ int) (string, int) {
			got := resptest.ParseAll(t, commandstest.Say(t, s, "MULTI\r\nGET a\r\n"+between+"GET b\r\nEXEC\r\n"))
			e := got[len(got)-1].Elements
			if a, b := e[0].Text, e[len(e)-1].Text; a != b {
				t.Errorf("a is %q and b is %q", a, b)
			}
			return "", 0
		}
	}
	ways := []func(s *commandstest.Client, units int) (in string, moved int){
		func(_ *commandstest.Client, units int) (string, int) {
			return "MULTI\r\n" + both(units) + "EXEC\r\n", units
		},
		func(_ *commandstest.Client, units int) (string, int) {
			return "MULTI\r\nDBSIZE\r\n" + both(units) + "EXEC\r\n", units
		},
		func(_ *commandstest.Client, units int) (string, int) {
			return resptest.Encode("EVAL", script, "2", "a", "b", strconv.Itoa(units)), units
		},
		func(_ *commandstest.Client, units int) (string, int) {
			return "MULTI\r\n" + fmt.Sprintf(call, "a", units) + resptest.Encode("EVAL", script, "2", "a", "b", "1") + fmt.Sprintf(call, "b", units) + "EXEC\r\n", units + 1
		},
		func(s *commandstest.Client, units int) (string, int) { // by an earlier read
			text, dirty := strings.CutSuffix(commandstest.Say(t, s, "WATCH a b\r\nGET a\r\nMULTI\r\nGET a\r\n"+both(units)+"EXEC\r\n"), "*-1\r\n")
			if dirty {
				return "", 0
			}
			got := resptest.ParseAll(t, text)
			exec := got[len(got)-1]
			if exec.Elements[0].Text != got[1].Text {
				t.Errorf("read %q and then %q, though it watched", got[1].Text, exec.Elements[0].Text)
			}
			return "", units
		},
		look(""), look("DBSIZE\r\n"), look("EVAL \"return 1\" 0\r\n"),
		func(s *commandstest.Client, _ int) (string, int) {
			got := resptest.ParseAll(t, commandstest.Say(t, s, resptest.Encode("EVAL", "local a = redis.call('get', KEYS[1]) for i = 1, 2000 do end return {a, redis.call('get', KEYS[2])}", "2", "a", "b")))
			if e := got[0].Elements; len(e) == 2 && e[0].Text != e[1].Text {
				t.Errorf("a script read %q and %q", e[0].Text, e[1].Text)
			}
			return "", 0
		},
	}
	var wg sync.WaitGroup
	for g, way := range ways {
		wg.Go(func() {
			s := r.Session()
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for range rounds {
				in, units := way(s, 1+rng.IntN(5))
				if got := commandstest.Say(t, s, in); strings.Contains(got, "-") && strings.Contains(got, "ERR") {
					t.Errorf("%q: got %q", in, got)
				}
				mu.Lock()
				moved += units
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := fmt.Sprintf(":%d\r\n", moved)
	if got := commandstest.Say(t, r.Session(), "TTL a\r\nTTL b\r\n"); got != want+want {
		t.Errorf("%d units have been moved, but in the end there are %q", moved, got)
	}
}
