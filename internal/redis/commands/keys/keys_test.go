package keys_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/peer"
)

// TestExpireBounds: times beyond the clock are refused, others compared with the key's.
func TestExpireBounds(t *testing.T) {
	const nowMs, emptyMs = commandstest.T0 / 1e6, commandstest.T0/1e6 + 50_000
	const none, done = ":0\r\n", ":1\r\n"
	invalid := func(name string) string { return "-ERR invalid expire time in '" + name + "' command\r\n" }
	for _, tt := range []struct {
		name   string
		n      int64
		option string
		want   string
		gone   bool
	}{
		{"expireat", math.MaxInt64 / 1000, "", done, false},
		{"expireat", math.MaxInt64/1000 + 1, "", invalid("expireat"), false},
		{"expireat", math.MinInt64 / 1000, "", done, true},
		{"expireat", math.MinInt64/1000 - 1, "", invalid("expireat"), false},
		{"pexpireat", math.MaxInt64, "", done, false},
		{"pexpireat", math.MinInt64, "", done, true},
		{"pexpire", math.MaxInt64 - nowMs, "", done, false},
		{"pexpire", math.MaxInt64 - nowMs + 1, "", invalid("pexpire"), false},
		{"expire", (math.MaxInt64 - nowMs) / 1000, "", done, false},
		{"expire", (math.MaxInt64-nowMs)/1000 + 1, "", invalid("expire"), false},
		{"expire", math.MaxInt64, "", invalid("expire"), false},
		{"expire", math.MinInt64, "", invalid("expire"), false},
		{"pexpireat", emptyMs - 1, " GT", none, false},
		{"pexpireat", emptyMs, " GT", none, false},
		{"pexpireat", emptyMs + 1, " GT", done, false},
		{"pexpireat", emptyMs - 1, " LT", done, false},
		{"pexpireat", emptyMs, " LT", none, false},
		{"pexpireat", emptyMs + 1, " LT", none, false},
		{"pexpireat", nowMs + 1, "", done, false},
		{"pexpireat", nowMs, "", done, true},
		{"pexpire", 1, "", done, false},
		{"pexpire", 0, "", done, true},
		{"expire", 0, " NX", none, false},
		{"expire", 0, " XX", done, true},
	} {
		s := commandstest.New().Session()
		commandstest.Say(t, s, "CL.THROTTLE k 4 1 10 5\r\n")
		in := fmt.Sprintf("%s k %d%s", tt.name, tt.n, tt.option)
		left := ":50000\r\n"
		if tt.gone {
			left = ":-2\r\n"
		}
		commandstest.Expect(t, s, in+"\r\nPTTL k\r\n", tt.want+left)
	}
}

// many returns a command with n keys.
func many(name string, n int) string {
	args := []string{name}
	for i := range n {
		args = append(args, "k"+strconv.Itoa(i))
	}
	return resptest.Encode(args...)
}

// TestManyKeysAreForTheBackground, so that others are served meanwhile, while their input is reused.
func TestManyKeysAreForTheBackground(t *testing.T) {
	const few = 1000
	for _, tt := range []struct {
		name, in   string
		background bool
		want       string // prefix of the reply
	}{
		{"few", many("EXISTS", few), false, ":1000\r\n"},
		{"many", many("EXISTS", few+1), true, ":1001\r\n"},
		{"few to delete", many("DEL", few), false, ":1000\r\n"},
		{"many to delete", many("UNLINK", few+1), true, ":1001\r\n"},
		{"few to walk over", "SCAN 0 MATCH nosuch COUNT 1000\r\n", false, "*2\r\n$"},
		{"many to walk over", "SCAN 0 MATCH nosuch COUNT 1001\r\n", true, "*2\r\n$1\r\n0\r\n*0\r\n"},
		{"all of them", "DBSIZE\r\n", true, ":1001\r\n"},
		{"all names", "KEYS k7\r\n", true, "*1\r\n$2\r\nk7\r\n"},
		{"all of a database", "FLUSHDB\r\n", true, "+OK\r\n"},
		{"all of all databases", "FLUSHALL\r\n", false, "+OK\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := commandstest.New().Session()
			for i := range few + 1 {
				commandstest.Say(t, s, fmt.Sprintf("CL.THROTTLE k%d 0 1 60\r\n", i))
			}
			buf := []byte(tt.in)
			n, out, status := s.Feed(buf, nil)
			if status == peer.More {
				_, out, status = s.Feed(nil, out)
			}
			if n != len(buf) || (status == peer.Waiting) != tt.background {
				t.Fatalf("consumed %d of %d bytes, status %d", n, len(buf), status)
			}
			for i := range buf {
				buf[i] = '?'
			}
			for status == peer.Waiting {
				<-s.Conn.Woken
				_, out, status = s.Feed(nil, out)
			}
			if !strings.HasPrefix(string(out), tt.want) {
				t.Errorf("got %q, want %q", out, tt.want)
			}
		})
	}
}

// brokenStore fails on keys.
type brokenStore struct{ *shard.Store }

func (brokenStore) Entry(int64, store.Key) (store.Entry, bool, error) {
	return store.Entry{}, false, errors.New("it broke")
}

func (brokenStore) State(int64, store.Key) (limiter.State, bool, error) {
	return limiter.State{}, false, errors.New("it broke")
}

func (brokenStore) Apply(int64, store.Key, store.Step) error { return errors.New("it broke") }

func (brokenStore) Throttle(_ int64, batch []store.Request) store.Pending {
	for i := range batch {
		batch[i].End(errors.New("it broke"))
	}
	return nil
}

func (brokenStore) Delete(int64, []store.Key) (int, error) { return 0, errors.New("it broke") }

// TestStoreFails: every command on a key reports it.
func TestStoreFails(t *testing.T) {
	s := commandstest.New(func(c *commands.Config) { c.Store = brokenStore{shard.New()} }).Session()
	for _, in := range []string{
		"EXISTS k\r\n", "TOUCH k\r\n", "DEL k\r\n", many("DEL", 1001), many("EXISTS", 1001), "TTL k\r\n", "PTTL k\r\n", "EXPIRETIME k\r\n",
		"PEXPIRETIME k\r\n", "EXPIRE k 1\r\n", "PERSIST k\r\n", "TYPE k\r\n", "GET k\r\n", "STRLEN k\r\n", "OBJECT ENCODING k\r\n", "DUMP k\r\n", "RESTORE k 0 x\r\n",
		"SET k 1700000030000000000\r\n", "SETNX k v\r\n", "GETDEL k\r\n", "GETEX k\r\n", "INCR k\r\n", "INCRBYFLOAT k 1\r\n",
		"INCREX k EX 5\r\n", "INCREX k BYFLOAT 1\r\n",
	} {
		commandstest.ExpectLike(t, s, in+"PING\r\n", "-…it broke…\r\n"+commandstest.Pong)
	}
}

// TestMemoryUsage of a short key is its slot, also when absent.
func TestMemoryUsage(t *testing.T) {
	s := commandstest.New().Session()
	commandstest.Say(t, s, "CL.THROTTLE k 0 1 60\r\n")
	for _, tt := range []struct{ in, want string }{
		{"k", ":"}, {"k SAMPLES 0", ":"}, {"k samples 5 SAMPLES 7", ":"}, {"nosuch SAMPLES 0", "$-1\r\n"},
		{"k SAMPLES -1", "-ERR syntax error\r\n"}, {"k SAMPLES x", "-ERR value is not an integer or out of range\r\n"},
		{"k NOSUCH 1", "-ERR syntax error\r\n"}, {"k SAMPLES", "-ERR syntax error\r\n"},
	} {
		if got := commandstest.Say(t, s, "MEMORY USAGE "+tt.in+"\r\n"); !strings.HasPrefix(got, tt.want) || got == ":0\r\n" {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
}
