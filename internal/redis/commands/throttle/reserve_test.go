package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// ways are the ways to call: alone, in a transaction, in one beside all keys, and in a script.
const ways = 4

// callIn returns the reply of a call in one of the ways.
func callIn(t *testing.T, s *commandstest.Client, way int, key string, args ...string) resptest.Reply {
	t.Helper()
	in := resptest.Encode(args...)
	switch way {
	case 1:
		in = "MULTI\r\n" + in + "EXEC\r\n"
	case 2:
		in = "MULTI\r\nDBSIZE\r\n" + in + "EXEC\r\n"
	case 3:
		in = resptest.Encode(append([]string{"EVAL", "return redis.call(unpack(ARGV))", "1", key}, args...)...)
	}
	all := resptest.ParseAll(t, commandstest.Say(t, s, in))
	last := all[len(all)-1]
	if way == 1 || way == 2 {
		last = last.Elements[len(last.Elements)-1]
	}
	return last
}

// five returns a reply's integers as a result.
func five(t *testing.T, r resptest.Reply) funnel.Result {
	t.Helper()
	if len(r.Elements) < 5 {
		t.Fatalf("got %+v", r)
	}
	e := r.Elements
	return funnel.Result{Limited: e[0].Number == 1, Limit: e[1].Number, Remaining: e[2].Number, RetryAfter: e[3].Number, ResetAfter: e[4].Number}
}

// debit is what passed a funnel; of a reservation, its known use.
type debit struct {
	atNs    int64
	ns      int64 // in which it drains; negative for a refund
	id      string
	endsNs  int64 // of an open reservation
	isExtra bool  // of a commit above its reservation, which is always debited
}

// debits models a funnel by its whole history.
type debits []debit

// settle drops expired reservations.
func (d debits) settle(nowNs int64) {
	for i := range d {
		if d[i].id != "" && d[i].endsNs <= nowNs {
			d[i].id, d[i].ns = "", 0
		}
	}
}

// tat returns when the funnel is empty if nobody had reserved unused units. There must be no refunds.
func (d debits) tat(nowNs int64) int64 {
	tatNs := int64(0)
	for _, one := range d {
		if one.ns > 0 {
			tatNs = max(tatNs, one.atNs) + one.ns
		}
	}
	return max(tatNs, nowNs)
}

// commit corrects a reservation.
func (d debits) commit(nowNs int64, id string, actualNs int64) (_ debits, count int64) {
	at := slices.IndexFunc(d, func(one debit) bool { return one.id == id })
	if id == "" || at < 0 {
		return d, 0
	}
	d[at].id = ""
	if extraNs := actualNs - d[at].ns; extraNs > 0 {
		return append(d, debit{atNs: nowNs, ns: extraNs, isExtra: true}), 1
	}
	d[at].ns = actualNs
	return d, 1
}

// mostOver returns the most by which any period that ends now has passed more than the capacity and the
// drain.
func (d debits) mostOver(l funnel.Limit, nowNs int64) (ns int64) {
	passedNs := int64(0)
	for i := len(d) - 1; i >= 0; i-- {
		if !d[i].isExtra {
			passedNs += d[i].ns
		}
		ns = max(ns, passedNs-int64(l.ToleranceNs())-(nowNs-d[i].atNs))
	}
	return ns
}

// game is a randomly used funnel and its model.
type game struct {
	*rand.Rand
	t          *testing.T
	harness    *commandstest.Harness
	client     *commandstest.Client
	limit      funnel.Limit
	intervalNs int64
	shape      []string
	debits     debits
	ids        []string // all reservations
	history    []string
}

func newGame(t *testing.T, seed uint64, change ...func(*commands.Config)) *game {
	g := &game{Rand: rand.New(rand.NewPCG(seed, 7)), t: t, harness: commandstest.New(change...)}
	g.client = g.harness.Session()
	burst, count, period := g.Int64N(12), 1+g.Int64N(3), 1+g.Int64N(3)
	g.shape = []string{fmt.Sprint(burst), fmt.Sprint(count), fmt.Sprint(period)}
	g.limit, _ = funnel.NewLimit(funnel.Burst, burst, count, period)
	g.intervalNs = int64(g.limit.IntervalNs())
	return g
}

func (g *game) call(args ...string) resptest.Reply {
	g.t.Helper()
	way := g.IntN(ways)
	g.history = append(g.history, fmt.Sprintf("%d ms, way %d: %s", (g.harness.Clock.Now()-commandstest.T0)/1_000_000, way, strings.Join(args, " ")))
	return callIn(g.t, g.client, way, "k", args...)
}

// request requests units by one of the commands, and returns the result.
func (g *game) request(units int64) (r funnel.Result) {
	g.t.Helper()
	now := g.harness.Clock.Now()
	quantity := fmt.Sprint(units)
	switch limit := append([]string{"k"}, g.shape...); g.IntN(3) {
	case 0:
		ttlMs := 1 + g.Int64N(6000)
		reply := g.call(append(append([]string{"CL.RESERVE"}, limit...), quantity, fmt.Sprint(ttlMs))...)
		r = five(g.t, reply)
		if id := reply.Elements[5]; r.Limited != (id.Kind == '_') {
			g.t.Fatalf("%q: got %+v", g.history, reply)
		} else if !r.Limited {
			g.ids = append(g.ids, id.Text)
			g.debits = append(g.debits, debit{atNs: now, ns: units * g.intervalNs, id: id.Text, endsNs: now + ttlMs*1_000_000})
		}
		return r
	case 1:
		reply := g.call(append(append([]string{"CL.MTHROTTLE", "1"}, limit...), quantity)...)
		r = five(g.t, reply.Elements[1])
	default:
		r = five(g.t, g.call(append(append([]string{"CL.THROTTLE"}, limit...), quantity)...))
	}
	if !r.Limited {
		g.debits = append(g.debits, debit{atNs: now, ns: units * g.intervalNs})
	}
	return r
}

// commit commits any reservation, open or not.
func (g *game) commit() {
	g.t.Helper()
	if len(g.ids) == 0 {
		return
	}
	id, actual := g.ids[g.IntN(len(g.ids))], g.Int64N(8)
	got := g.call("CL.COMMIT", "k", id, fmt.Sprint(actual)).Number
	var want int64
	if g.debits, want = g.debits.commit(g.harness.Clock.Now(), id, actual*g.intervalNs); got != want {
		g.t.Fatalf("%q: got %d, want %d", g.history, got, want)
	}
}

// TestReserveModel: every reply is that of a funnel without unused reservations.
func TestReserveModel(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(40) {
		g := newGame(t, seed)
		for range 120 {
			g.harness.Clock.Advance(g.Int64N(2) * g.Int64N(2*commandstest.Sec))
			now := g.harness.Clock.Now()
			g.debits.settle(now)
			if g.IntN(3) == 0 {
				g.commit()
				continue
			}
			units := 1 + g.Int64N(5)
			tatNs := g.debits.tat(now)
			_, want := g.limit.Throttle(tatNs, now, units)
			if got := g.request(units); got != want {
				t.Fatalf("seed %d, %q: got %+v, want %+v", seed, g.history, got, want)
			}
		}
	}
}

// TestReservePassesNoMore: in any sequence of reservations, commits, expiries and refunds, no period passes
// more than the capacity and its drain. A commit's excess has passed before, whatever the limit.
func TestReservePassesNoMore(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(50) {
		g := newGame(t, seed)
		for range 120 {
			g.harness.Clock.Advance(g.Int64N(2) * g.Int64N(2*commandstest.Sec))
			now := g.harness.Clock.Now()
			g.debits.settle(now)
			switch g.IntN(4) {
			case 0:
				g.commit()
			case 1:
				g.refund(1 + g.Int64N(6))
			default:
				g.request(1 + g.Int64N(5))
			}
			if over := g.debits.mostOver(g.limit, now); over > 0 {
				t.Fatalf("seed %d, %q: %d ns too much", seed, g.history, over)
			}
		}
	}
}

// refund returns units, and notes how many there were.
func (g *game) refund(units int64) {
	g.t.Helper()
	before := g.tat()
	g.call(append(append([]string{"CL.THROTTLE", "k"}, g.shape...), fmt.Sprint(-units))...)
	g.debits = append(g.debits, debit{atNs: g.harness.Clock.Now(), ns: g.tat() - before})
}

// tat returns when the funnel is empty, according to the server.
func (g *game) tat() int64 {
	g.t.Helper()
	state, ok, err := g.harness.Config.Store.State(g.harness.Clock.Now(), store.Key{Name: []byte("k")})
	if err != nil {
		g.t.Fatal(err)
	}
	if !ok {
		return g.harness.Clock.Now()
	}
	tatNs, err := state.TAT(g.harness.Clock.Now())
	if err != nil {
		g.t.Fatal(err)
	}
	return tatNs
}

// TestReserveEnds: a key without open reservations is a plain funnel, and absent when empty.
func TestReserveEnds(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	reserve := func(args ...string) string {
		reply := callIn(t, s, 0, "k", append([]string{"CL.RESERVE", "k", "9", "1", "1"}, args...)...)
		if len(reply.Elements) != 6 || reply.Elements[5].Kind != '$' {
			t.Fatalf("got %+v", reply)
		}
		return reply.Elements[5].Text
	}
	id := reserve("5", "60000")
	r.Clock.Advance(10 * commandstest.Sec) // the funnel is empty, the reservation open
	commandstest.Expect(t, s, "EXISTS k\r\nCL.THROTTLE k 9 1 1 0\r\nTYPE k\r\n",
		":1\r\n"+resptest.Ints(0, 10, 10, -1, 0)+"+string\r\n")
	commit := func(id, actual string) string {
		return commandstest.Say(t, s, resptest.Encode("CL.COMMIT", "k", id, actual))
	}
	if got := commit(id, "8"); got != ":1\r\n" {
		t.Errorf("got %q", got)
	}
	commandstest.Expect(t, s, "CL.THROTTLE k 9 1 1 0\r\n", resptest.Ints(0, 10, 7, -1, 3))
	if got := commit(id, "8") + commit("7", "8") + commandstest.Say(t, s, "CL.THROTTLE k 9 1 1 0\r\n"); got != ":0\r\n:0\r\n"+resptest.Ints(0, 10, 7, -1, 3) {
		t.Errorf("twice: got %q", got)
	}
	id = reserve("7", "60000")
	if got := commit(id, "0") + commandstest.Say(t, s, "CL.THROTTLE k 9 1 1 0\r\n"); got != ":1\r\n"+resptest.Ints(0, 10, 7, -1, 3) {
		t.Errorf("nothing was used: got %q", got)
	}
	id = reserve("7", "1000")
	r.Clock.Advance(commandstest.Sec)
	if got := commit(id, "7") + commandstest.Say(t, s, "CL.THROTTLE k 9 1 1 0\r\n"); got != ":0\r\n"+resptest.Ints(0, 10, 8, -1, 2) {
		t.Errorf("expired: got %q", got)
	}
	r.Clock.Advance(2 * commandstest.Sec)
	commandstest.Expect(t, s, "EXISTS k\r\n", ":0\r\n")
}

// TestManyReservations: a key has at most 4,096 open ones, and an ended one makes space.
func TestManyReservations(t *testing.T) {
	racetest.SkipAlone(t)
	s := commandstest.New().Session()
	call := resptest.Encode("CL.RESERVE", "k", "9999", "1", "1", "1", "60000")
	all := resptest.ParseAll(t, commandstest.Say(t, s, strings.Repeat(call, 4096)))
	seen := map[string]bool{}
	for _, r := range all {
		seen[r.Elements[5].Text] = true
	}
	if len(seen) != 4096 {
		t.Fatalf("%d ids", len(seen))
	}
	const refused = "-ERR the key has 4096 open reservations or holders, which is the most; commit or release some, or spread them over several keys\r\n"
	commandstest.Expect(t, s, call+"CL.THROTTLE k 9999 1 1 0\r\n",
		refused+resptest.Ints(0, 10000, 10000-4096, -1, 4096))
	commandstest.ExpectLike(t, s, resptest.Encode("CL.COMMIT", "k", all[77].Elements[5].Text, "1")+call,
		":1\r\n*6\r\n:0\r\n…")
}

// TestReserveIsRefused for a full store, a frozen one, and a key of another kind, and then changes nothing.
func TestReserveIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, code string
		prepare    string
		refuse     func(s *shard.Store)
	}{
		{"full", "OOM ", "", func(s *shard.Store) { s.SetMaxBytes(1, store.NoEviction) }},
		{"frozen", "MISCONF ", "CL.THROTTLE k 9 1 1\r\n", func(s *shard.Store) { s.Track(func() {}); s.Freeze(0, store.ErrFrozen) }},
		{"another kind", "WRONGTYPE ", "CL.BUCKET RESET k 5\r\n", func(*shard.Store) {}},
	} {
		for way := range ways {
			st := shard.New()
			s := commandstest.New(func(c *commands.Config) { c.Store = st }).Session()
			commandstest.Say(t, s, tt.prepare)
			tt.refuse(st)
			before := commandstest.Say(t, s, "EXISTS k\r\nPTTL k\r\n")
			for _, call := range [][]string{
				{"CL.RESERVE", "k", "9", "1", "1", "5", "1000"},
				{"CL.CONCURRENCY", "ACQUIRE", "k", "9", "1000"},
			} {
				if got := callIn(t, s, way, "k", call...); got.Kind != '-' || !strings.HasPrefix(got.Text, tt.code) && (tt.name != "frozen" || call[0] == "CL.RESERVE") {
					t.Errorf("%s, %q, way %d: got %+v", tt.name, call, way, got)
				}
			}
			if after := commandstest.Say(t, s, "EXISTS k\r\nPTTL k\r\n"); after != before {
				t.Errorf("%s: %q became %q", tt.name, before, after)
			}
		}
	}
}

// TestReservationsAreCounted as decisions, with their keys in CL.TOP.
func TestReservationsAreCounted(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, "CL.RESERVE a 4 1 1 3 1000\r\nCL.RESERVE a 4 1 1 3 1000\r\nCL.COMMIT a 1 1\r\n"+
		"CL.CONCURRENCY ACQUIRE b 1 1000\r\nCL.CONCURRENCY ACQUIRE b 1 1000\r\nCL.CONCURRENCY LEN b\r\nCL.CONCURRENCY RELEASE b x\r\n")
	st := r.Stats()
	if got, want := fmt.Sprint(st.Allowed, st.Limited, st.Requested, st.Granted), "2 2 8 4"; got != want {
		t.Errorf("allowed, limited, requested and granted are %s, want %s", got, want)
	}
	if top := r.Engine.Records.TopKeys.Top(0, r.Clock.Now()+commandstest.Sec, 10); len(top) != 2 || top[0].Share != 0.5 || top[1].Share != 0.5 {
		t.Errorf("top keys: %+v", top)
	}
}

// TestReserveOfUsers: reserving and committing require no right to refund.
func TestReserveOfUsers(t *testing.T) {
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~a:* +@all -@refill -del")
	s := r.Login("app")
	const denied = "NOPERM this user has no permissions to access one of the keys used as arguments"
	for way := range ways - 1 { // the last one names another key
		reply := callIn(t, s, way, "a:1", "CL.RESERVE", "a:1", "9", "1", "1", "5", "1000")
		if len(reply.Elements) != 6 {
			t.Fatalf("way %d: got %+v", way, reply)
		}
		if got := callIn(t, s, way, "a:1", "CL.COMMIT", "a:1", reply.Elements[5].Text, "1"); got.Number != 1 {
			t.Errorf("way %d: got %+v", way, got)
		}
	}
	if got := callIn(t, s, 0, "", "CL.CONCURRENCY", "ACQUIRE", "a:2", "9", "1000", "me"); len(got.Elements) != 6 {
		t.Errorf("got %+v", got)
	}
	if got := callIn(t, s, 0, "", "CL.CONCURRENCY", "RELEASE", "a:2", "me"); got.Number != 1 {
		t.Errorf("got %+v", got)
	}
	for _, call := range [][]string{
		{"CL.RESERVE", "b", "9", "1", "1", "5", "1000"}, {"CL.COMMIT", "b", "1", "5"}, {"CL.CONCURRENCY", "LEN", "b"},
	} {
		if got := callIn(t, s, 0, "", call...); got.Text != denied {
			t.Errorf("%q: got %+v", call, got)
		}
	}
}

// TestLateCommits: an id tells that its reservation has expired, from the nanosecond at which it does.
func TestLateCommits(t *testing.T) {
	t.Parallel()
	r := commandstest.New()
	s := r.Session()
	reserve := func(key string) string {
		replies := resptest.ParseAll(t, commandstest.Say(t, s, "CL.RESERVE "+key+" 9 10 60 4 1000\r\n"))
		return replies[0].Elements[5].Text
	}
	commit := func(key, id string, want int) {
		t.Helper()
		commandstest.Expect(t, s, "CL.COMMIT "+key+" "+id+" 3 LATE 9 10 60\r\n", fmt.Sprintf(":%d\r\n", want))
	}
	first, second := reserve("k"), reserve("other")
	if first == second {
		t.Errorf("two reservations have the id %s", first)
	}
	commit("k", first, 1)
	commit("k", first, 0) // not due: it was committed before
	commandstest.Expect(t, s, "CL.PEEK k 9 10 60\r\n", resptest.Ints(0, 10, 7, -1, 18))
	r.Clock.Advance(1e9 - 1)
	commit("k", first, 0)
	r.Clock.Advance(1)
	commandstest.Expect(t, s, "EXISTS other\r\nCL.COMMIT other "+second+" 3\r\n", ":0\r\n:0\r\n")
	commit("other", second, 2)
	commandstest.Expect(t, s, "CL.PEEK other 9 10 60\r\n", resptest.Ints(0, 10, 7, -1, 18))
	commit("other", second, 2) // debits again
	commandstest.Expect(t, s, "CL.PEEK other 9 10 60\r\n", resptest.Ints(0, 10, 4, -1, 36))
	commandstest.Expect(t, s, "CL.COMMIT other "+second+" 30 LATE 9 10 60\r\nCL.PEEK other 9 10 60 1\r\n", ":2\r\n"+resptest.Ints(1, 10, 0, 162, 216))
}
