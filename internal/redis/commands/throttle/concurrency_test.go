package throttle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/resptest"
)

// holders models a key's places by the ends of their leases.
type holders map[string]int64

func (h holders) settle(nowNs int64) {
	maps.DeleteFunc(h, func(_ string, endNs int64) bool { return endNs <= nowNs })
}

// seconds rounds up.
func seconds(ns int64) int64 { return (ns + commandstest.Sec - 1) / commandstest.Sec }

func (h holders) acquire(nowNs, most, leaseMs int64, token string) string {
	_, holds := h[token]
	first, retry := int64(0), int64(-1)
	if !holds && int64(len(h)) >= most {
		first, retry = 1, seconds(slices.Min(slices.Collect(maps.Values(h)))-nowNs)
	} else {
		h[token] = nowNs + leaseMs*1_000_000
	}
	reset := seconds(slices.Max(slices.Collect(maps.Values(h))) - nowNs)
	by := "_"
	if first == 0 {
		by = token
	}
	return fmt.Sprintf("%d %d %d %d %d %s", first, most, max(0, most-int64(len(h))), retry, reset, by)
}

// TestConcurrencyModel: every call replies as a plain model, and there are never more holders than places.
func TestConcurrencyModel(t *testing.T) {
	racetest.SkipAlone(t)
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		r, model := commandstest.New(), holders{}
		s := r.Session()
		most := 1 + random.Int64N(6)
		var history []string
		for range 150 {
			r.Clock.Advance(random.Int64N(2) * random.Int64N(commandstest.Sec))
			now := r.Clock.Now()
			model.settle(now)
			token, leaseMs := fmt.Sprint("holder", random.IntN(9)), 1+random.Int64N(4000)
			_, holds := model[token]
			count := fmt.Sprint(map[bool]int{true: 1}[holds])
			var call, want string
			switch random.IntN(5) {
			case 0:
				call, want = "RELEASE k "+token, count
				delete(model, token)
			case 1:
				call, want = fmt.Sprintf("RENEW k %d %s", leaseMs, token), count
				if holds {
					model[token] = now + leaseMs*1_000_000
				}
			case 2:
				call, want = "LEN k", fmt.Sprint(len(model))
			default:
				call = fmt.Sprintf("ACQUIRE k %d %d %s", most, leaseMs, token)
				want = model.acquire(now, most, leaseMs, token)
			}
			way := random.IntN(ways)
			history = append(history, fmt.Sprintf("%d ms, way %d: %s", (now-commandstest.T0)/1_000_000, way, call))
			got := callIn(t, s, way, "k", append([]string{"CL.CONCURRENCY"}, strings.Fields(call)...)...)
			if said := say(got); said != want {
				t.Fatalf("seed %d, %q: got %s, want %s", seed, history, said, want)
			}
			if int64(len(model)) > most {
				t.Fatalf("seed %d: %d hold a place of %d", seed, len(model), most)
			}
		}
	}
}

// say returns a reply's elements in one line.
func say(r resptest.Reply) string {
	switch r.Kind {
	case '_':
		return "_"
	case '*':
		all := make([]string, len(r.Elements))
		for i, e := range r.Elements {
			all[i] = say(e)
		}
		return strings.Join(all, " ")
	}
	return r.Text
}

// TestManyHolders: 4,096 holders have distinct tokens from the server.
func TestManyHolders(t *testing.T) {
	racetest.SkipAlone(t)
	s := commandstest.New().Session()
	call := resptest.Encode("CL.CONCURRENCY", "ACQUIRE", "k", "4096", "60000")
	seen := map[string]bool{}
	for _, r := range resptest.ParseAll(t, commandstest.Say(t, s, strings.Repeat(call, 4096))) {
		seen[r.Elements[5].Text] = true
	}
	if len(seen) != 4096 {
		t.Errorf("%d tokens", len(seen))
	}
	commandstest.Expect(t, s, call+"CL.CONCURRENCY LEN k\r\n",
		"*6\r\n:1\r\n:4096\r\n:0\r\n:60\r\n:60\r\n$-1\r\n:4096\r\n")
}
