package throttle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// want is one limit of a call.
type want struct {
	key                            string
	burst, count, period, quantity int64
}

func (w want) args() []string {
	return []string{w.key, fmt.Sprint(w.burst), fmt.Sprint(w.count), fmt.Sprint(w.period), fmt.Sprint(w.quantity)}
}

func together(all ...want) []string {
	args := []string{"CL.MTHROTTLE", fmt.Sprint(len(all))}
	for _, w := range all {
		args = append(args, w.args()...)
	}
	return args
}

// funnels models keys by their TATs.
type funnels map[string]int64

func (f funnels) throttle(nowNs int64, w want) funnel.Result {
	limit, err := funnel.NewLimit(funnel.Burst, w.burst, w.count, w.period)
	if err != nil {
		panic(err)
	}
	var r funnel.Result
	f[w.key], r = limit.Throttle(max(f[w.key], nowNs), nowNs, w.quantity)
	return r
}

// together returns CL.MTHROTTLE's reply: it tries all, also on empty funnels, and looks if one is limited.
func (f funnels) together(nowNs int64, all []want) (reply string) {
	tried, empty, limited := maps.Clone(f), funnels{}, false
	results := make([]funnel.Result, len(all))
	for i, w := range all {
		results[i] = tried.throttle(nowNs, w)
		if empty.throttle(nowNs, w).Limited {
			results[i].RetryAfter = -1
		}
		limited = limited || results[i].Limited
	}
	if !limited {
		maps.Copy(f, tried)
	}
	reply = fmt.Sprintf("*%d\r\n:0\r\n", 1+len(all))
	if limited {
		reply = strings.Replace(reply, ":0", ":1", 1)
		for i, w := range all {
			if w.quantity = 0; !results[i].Limited {
				results[i] = f.throttle(nowNs, w)
			}
		}
	}
	for _, r := range results {
		first := int64(0)
		if r.Limited {
			first = 1
		}
		reply += resptest.Ints(first, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter)
	}
	return reply
}

// someOf returns limits, some of the same key.
func someOf(r *rand.Rand) (all []want) {
	for range 1 + r.IntN(4) {
		all = append(all, want{fmt.Sprint("key", r.IntN(4)), r.Int64N(8), 1 + r.Int64N(3), 1 + r.Int64N(4), r.Int64N(5)})
	}
	return all
}

// TestTogetherModel: calls alone, in transactions and in scripts reply as a plain model.
func TestTogetherModel(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, model := commandstest.New(), funnels{}
		s := r.Session()
		for range 200 {
			r.Clock.Advance(random.Int64N(commandstest.Sec))
			all := someOf(random)
			call, reply := together(all...), model.together(r.Clock.Now(), all)
			in, wanted := resptest.Encode(call...), reply
			switch random.IntN(4) {
			case 0:
				in, wanted = "MULTI\r\n"+in+"EXEC\r\n", "+OK\r\n+QUEUED\r\n*1\r\n"+reply
			case 1:
				in, wanted = "MULTI\r\nKEYS none\r\n"+in+"EXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*0\r\n"+reply
			case 2:
				keys := []string{"key0", "key1", "key2", "key3"}
				in = resptest.Encode(append(append([]string{"EVAL", "return redis.call(unpack(ARGV))", "4"}, keys...), call...)...)
			}
			if got := commandstest.Say(t, s, in); got != wanted {
				t.Fatalf("seed %d, %q: got %q, want %q", seed, call, got, wanted)
			}
		}
	}
}

// TestAPairTwice: the second reply is that of one rule, by which the pair is limited behind the first.
func TestAPairTwice(t *testing.T) {
	for _, tt := range []struct {
		rules, before string
		quantity      int
		want          string // of the second
	}{
		{"FUNNEL 4 1 1 FIXEDWINDOW 6 3600", "CL.CHECK l k 4", 1, resptest.Ints(1, 5, 0, 1, 5)},
		{"FUNNEL 4 1 1 FIXEDWINDOW 5 3600", "CL.CHECK l k 4", 1, resptest.Ints(1, 5, 0, 3600, 3600)},
		{"FUNNEL 4 1 1 FIXEDWINDOW 6 3600", "", 3, resptest.Ints(1, 5, 2, -1, 3)}, // by the funnel never, by the window
		{"FUNNEL 9 1 1 SLIDINGWINDOW 5 3600 SLIDINGWINDOW 4 60", "CL.CHECK l k 2", 2, resptest.Ints(1, 5, 1, 3600, 3600)},
		{"FUNNEL 9 1 1 SLIDINGWINDOW 5 3600 SLIDINGWINDOW 4 60", "CL.CHECK l k 2", 3, resptest.Ints(1, 4, 2, -1, 60)},
	} {
		s := commandstest.New().Session()
		commandstest.Say(t, s, "CL.LIMIT SET l "+tt.rules+"\r\n"+tt.before+"\r\n")
		got := commandstest.Say(t, s, fmt.Sprintf("CL.MCHECK 2 l k l k QUANTITY %d\r\n", tt.quantity))
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s, twice %d: %q, want %q", tt.rules, tt.quantity, got, tt.want)
		}
	}
}

// TestTogetherCounts decisions: a limited call grants nothing.
func TestTogetherCounts(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	commandstest.Say(t, s, resptest.Encode(together(want{"a", 4, 1, 10, 2}, want{"b", 1, 1, 10, 2})...))
	commandstest.Say(t, s, resptest.Encode(together(want{"a", 4, 1, 10, 3}, want{"b", 1, 1, 10, 1}, want{"b", 9, 1, 10, 8})...))
	st := r.Stats()
	if got, want := fmt.Sprint(st.Allowed, st.Limited, st.Requested, st.Granted), "4 1 5 4"; got != want {
		t.Errorf("allowed, limited, requested and granted are %s, want %s", got, want)
	}
	if n := r.Engine.Records.Stats().Calls["cl.mthrottle"]; n != 2 {
		t.Errorf("%d calls", n)
	}
	var top []string
	for _, e := range r.Engine.Records.TopKeys.Top(0, r.Clock.Now()+commandstest.Sec, 10) {
		top = append(top, e.Name)
	}
	if len(top) != 2 {
		t.Errorf("top keys: %q", top)
	}
}

// TestTogetherIsRefusedAsAWhole: if one key has no space, or nothing may be changed, nothing is.
func TestTogetherIsRefusedAsAWhole(t *testing.T) {
	const script = "return redis.call(unpack(ARGV))"
	keys, all := []string{"old"}, []want{{"old", 9, 1, 10, 1}}
	for i := range int64(20) { // some have no space, wherever they are
		keys, all = append(keys, fmt.Sprint("new", i)), append(all, want{fmt.Sprint("new", i), 9, 1, 10, 1})
	}
	inScript := func(call []string) string {
		return resptest.Encode(append(append([]string{"EVAL", script, fmt.Sprint(len(keys))}, keys...), call...)...)
	}
	forms := map[string]func(call []string) string{
		"alone":                func(call []string) string { return resptest.Encode(call...) },
		"in a transaction":     func(call []string) string { return "MULTI\r\n" + resptest.Encode(call...) + "EXEC\r\n" },
		"beside all keys":      func(call []string) string { return "MULTI\r\nKEYS none\r\n" + resptest.Encode(call...) + "EXEC\r\n" },
		"in a script":          inScript,
		"in a script, in EXEC": func(call []string) string { return "MULTI\r\n" + inScript(call) + "EXEC\r\n" },
	}
	for _, tt := range []struct {
		name, code string
		refuse     func(s *shard.Store)
	}{
		{"full", "-OOM ", func(s *shard.Store) { s.SetMaxBytes(1, store.NoEviction) }},
		{"frozen", "-MISCONF ", func(s *shard.Store) { s.Track(func() {}); s.Freeze(0, store.ErrFrozen) }},
	} {
		for form, write := range forms {
			s := shard.New()
			r := commandstest.New(func(c *commands.Config) { c.Store = s })
			c := r.Session()
			commandstest.Say(t, c, resptest.Encode("CL.THROTTLE", "old", "9", "1", "10", "4"))
			tt.refuse(s)
			// The first could be debited, at least if only another has no space.
			commandstest.ExpectLike(t, c, write(together(all...)), "…"+tt.code+"…")
			got := commandstest.Say(t, c, "CL.THROTTLE old 9 1 10 0\r\n"+resptest.Encode(append([]string{"EXISTS"}, keys...)...))
			if want := resptest.Ints(0, 10, 6, -1, 40) + ":1\r\n"; got != want {
				t.Errorf("%s %s: afterwards %q", tt.name, form, got)
			}
		}
	}
}

// TestTogetherMakesFewKeys: no more new ones than the client's address may create, each counted once.
func TestTogetherMakesFewKeys(t *testing.T) {
	const refused = "-ERR more than 2 new keys per second from this address, the limit of --max-new-keys-per-second; existing keys still answer\r\n"
	one := func(key string) want { return want{key, 4, 1, 10, 1} }
	r := commandstest.New()
	r.Engine.NewKeys.Limit(2)
	s := r.Session()
	commandstest.ExpectLike(t, s, resptest.Encode(together(one("a"), one("b"), one("a"))...), "*4\r\n:0\r\n…")
	commandstest.Expect(t, s, resptest.Encode(together(one("a"), one("c"))...)+"EXISTS c\r\n",
		refused+":0\r\n")
	commandstest.ExpectLike(t, s, resptest.Encode(together(one("a"), want{"c", 4, 1, 10, 0})...),
		"*3\r\n:0\r\n*5\r\n:0\r\n:5\r\n:2\r\n…")
}

// plainStore has only store.Keys.
type plainStore struct{ store.Store }

func TestTogetherNeedsTransactions(t *testing.T) {
	r := commandstest.New(func(c *commands.Config) { c.Store = plainStore{c.Store} })
	got := commandstest.Say(t, r.Session(), resptest.Encode(together(want{"a", 4, 1, 10, 1})...)+"EXISTS a\r\n")
	if want := "-ERR the store of this server has no transactions; send the commands one by one\r\n:0\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTogetherOfUsers requires the right to read and write each key.
func TestTogetherOfUsers(t *testing.T) {
	const denied = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
	r := commandstest.NewUserHarness(t, "user default on nopass ~* &* +@all", "user app on >pw ~a:* +cl.mthrottle", "user reader on >pw %R~a:* ~b:* +cl.mthrottle",
		"user none on >pw ~* +@all -cl.mthrottle")
	a, b := want{"a:1", 4, 1, 10, 1}, want{"b:1", 4, 1, 10, 1}
	for _, tt := range []struct {
		user string
		call []string
		want string
	}{
		{"app", together(a), "*2\r\n:0\r\n"},
		{"app", together(a, b), denied},
		{"app", together(b, a), denied},
		{"reader", together(b), "*2\r\n:0\r\n"},
		{"reader", together(b, a), denied},
		{"none", together(a), "-NOPERM this user has no permissions to run the 'cl.mthrottle' command\r\n"},
		{"app", append(together(a), b.args()...), "-Cell error: "}, // touches none of its keys
	} {
		commandstest.ExpectLike(t, r.Login(tt.user), resptest.Encode(tt.call...), tt.want+"…")
	}
}

// TestManyTogether: the maximum, also in transactions that hold keys or run on snapshots.
func TestManyTogether(t *testing.T) {
	var all []want
	for i := range int64(128) {
		all = append(all, want{fmt.Sprint("key", i), 4, 1, 10, 1})
	}
	call := resptest.Encode(together(all...)...)
	for _, calls := range []int{1, 7, 100} {
		r := commandstest.New()
		got := resptest.ParseAll(t, commandstest.Say(t, r.Session(), "MULTI\r\n"+strings.Repeat(call, calls)+"EXEC\r\n"))
		replies := got[len(got)-1].Elements
		if len(replies) != calls {
			t.Fatalf("%d calls: %d replies", calls, len(replies))
		}
		for i, reply := range replies {
			if whole := reply.Elements[0].Number; len(reply.Elements) != 129 || (whole == 1) != (i >= 5) {
				t.Errorf("%d calls: reply %d begins with %d and has %d elements", calls, i, whole, len(reply.Elements))
			}
		}
		if st := r.Stats(); st.Keys != 128 || st.Granted != uint64(min(calls, 5)*128) {
			t.Errorf("%d calls: %d keys, %d units granted", calls, st.Keys, st.Granted)
		}
	}
}

// TestTogetherOfManyClients: clients that name keys in any order never deadlock, and exactly the capacity
// passes.
func TestTogetherOfManyClients(t *testing.T) {
	const clients, calls, room = 8, 200, 300
	r := commandstest.New(commandstest.Standing)
	var allowed [clients]int
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			all := []want{{"a", room - 1, 1, 60, 1}, {"b", 2*room - 1, 1, 60, 2}, {"c", 9 * room, 1, 60, 1}}
			rand.New(rand.NewPCG(1, uint64(client))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			call, s := resptest.Encode(together(all...)...), r.Session()
			for range calls {
				if strings.HasPrefix(commandstest.Say(t, s, call), "*4\r\n:0\r\n") {
					allowed[client]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range allowed {
		sum += n
	}
	if st := r.Stats(); sum != room || st.Granted != 4*room {
		t.Errorf("%d calls were allowed, %d units granted", sum, st.Granted)
	}
	got := commandstest.Say(t, r.Session(), "CL.THROTTLE a 299 1 60 0\r\nCL.THROTTLE c 2700 1 60 0\r\n")
	if want := resptest.Ints(0, room, 0, -1, room*60) + resptest.Ints(0, 9*room+1, 8*room+1, -1, room*60); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
