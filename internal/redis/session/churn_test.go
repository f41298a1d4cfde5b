package session

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellserver/internal/redis/background"
	"cellserver/internal/redis/execute"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/wire/peer"
)

// said returns inputs of a churn's clients, in any order.
func said() []string {
	return []string{
		strings.Repeat("CL.THROTTLE k 9 1 1\r\n", 130), "CL.THROTTLE k 9 x 1\r\n", "PING\r\n", "WATCH k w\r\n", "MULTI\r\n", "EXEC\r\n",
		"MULTI\r\nCL.THROTTLE k 9 1 1\r\nDBSIZE\r\nEXEC\r\n", "MULTI\r\nCL.THROTTLE w 9 1 1\r\nEVAL \"return 1\" 1 k\r\nEXEC\r\n",
		"MULTI\r\nCONFIG SET a b\r\nEXEC\r\n", "DBSIZE\r\n", "MONITOR\r\n", "RESET\r\n", "DISCARD\r\n", "NOSUCH\r\n", "TEST.LATER\r\n",
		"EVAL \"return redis.call('cl.throttle', KEYS[1], ARGV[1], ARGV[2], ARGV[3])\" 1 k 9 1 1\r\n",
		"EVAL \"return redis.call('cl.throttle', 'k', 9, 1, 1)\" 1 k\r\n", "EVAL \"redis.log(3, 'x') while true do end\" 1 w\r\n",
		"SELECT 1\r\n", "MULTI\r\nSELECT 1\r\nCL.THROTTLE k 9 1 1\r\nDBSIZE\r\nEXEC\r\n", "CLIENT REPLY OFF\r\n", "CLIENT REPLY ON\r\n",
		"CLIENT KILL x\r\n", "MULTI\r\nCLIENT KILL x\r\nDBSIZE\r\nEXEC\r\n", "*x\r\n", "POST / HTTP/1.1\r\n", "CL.THROT",
	}
}

// TestChurn runs clients that send anything, hang up in each way and leave, all at once, and checks that
// nothing is left of them.
func TestChurn(t *testing.T) {
	for _, on := range []store.Store{shard.New(), NewFullLaterStore(), storetest.Bare(shard.New())} {
		r := newHarness(t, withLater, withConnection, func(c *execute.Config) { c.Store = on })
		var clients sync.WaitGroup
		for i := range 4 {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range 60 {
					r.churn(random)
				}
			})
		}
		clients.Wait()
		for _, slots := range []*background.Slots{r.Background, r.Scripts} {
			slots.Take(t.Context(), background.Who{}) // when the ended work is done
			slots.Give(background.Who{})
		}
		if n := r.Config.Clients.Len(); n != 0 || r.Config.Records.Monitors.Any() {
			t.Errorf("%T: %d clients are left, and one in MONITOR: %t", on, n, r.Config.Records.Monitors.Any())
		}
		if s := r.session(); s.say(t, "PING\r\n") != pong {
			t.Errorf("%T: PING is not answered", on)
		}
	}
}

// churn is one client. It waits to be woken unless only its end can wake it.
func (r *harness) churn(random *rand.Rand) {
	s := r.session()
	defer s.Close()
	lines, in := said(), []byte(nil)
	var out []byte
	for range 1 + random.IntN(12) {
		in = append(in, lines[random.IntN(len(lines))]...)
		var status peer.Status
		in, out, status = s.feedOnce(in, out[:0])
		for status == peer.Waiting || status == peer.More {
			if status == peer.Waiting {
				switch random.IntN(4) {
				case 0:
					return
				case 1:
					s.HungUp(peer.HalfClosed)
					s.HungUp(peer.Reset)
				default:
					s.HungUp(peer.Reset)
				}
				<-s.woken
			}
			in, out, status = s.feedOnce(in, out[:0])
		}
		if status != peer.NeedInput {
			return
		}
	}
}

// feedOnce is Feed, and overwrites the input afterwards.
func (c *client) feedOnce(in, out []byte) (left, replies []byte, status peer.Status) {
	n, replies, status := c.Feed(in, out)
	left = slices.Clone(in[n:])
	for i := range in {
		in[i] = '#'
	}
	return left, replies, status
}
