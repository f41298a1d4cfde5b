package transact

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cellserver/internal/shard"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// planOf returns the plan of commands, one a line.
func planOf(t *testing.T, lines string) *Plan {
	t.Helper()
	all := catalog.New()
	var steps []Step
	for line := range strings.Lines(lines) {
		args := bytes.Fields([]byte(line))
		c := all.Lookup(args[0])
		if c.Subs != nil {
			c = c.Sub(args[1])
		}
		steps = append(steps, Step{Command: c, Args: args})
	}
	return NewPlan(steps, 0, 16, nil)
}

// storeWith is a store that says how much it holds.
type storeWith struct {
	*shard.Store
	slots, nameBytes int
}

func (s storeWith) UpdateStats(st *store.Stats) { st.Slots, st.NameBytes = s.slots, s.nameBytes }

// TestWhatIsHeldTooLong: what would hold up others for longer than 5 ms, by the entries of the store, is
// refused.
func TestWhatIsHeldTooLong(t *testing.T) {
	for _, tt := range []struct {
		name, in  string
		keys      int // of the store, in tables that are half full
		clients   int
		nameBytes int    // of each key; 0 for 16
		refused   string // the command; empty if it is not
	}{
		{name: "DBSIZE", in: "DBSIZE", keys: 200_000},
		{name: "DBSIZE of many", in: "DBSIZE", keys: 300_000, refused: "dbsize"},
		{name: "2,500 x DBSIZE of a million", in: strings.Repeat("DBSIZE\n", 2500), keys: 1_000_000, refused: "dbsize"},
		{name: "2,500 x DBSIZE of a thousand", in: strings.Repeat("DBSIZE\n", 2500), keys: 1000, refused: "dbsize"},
		{name: "100 x DBSIZE of a thousand", in: strings.Repeat("DBSIZE\n", 100), keys: 1000},
		{name: "INCREX beside DBSIZE", in: strings.Repeat("INCREX k BYINT 5 EX 9 ENX\n", 1000) + "DBSIZE", keys: 1000},
		{name: "INCREX of floats beside DBSIZE", in: strings.Repeat("INCREX k EX 9 ENX ByFloat 5\n", 30) + "DBSIZE", keys: 1000, refused: "increx"},
		{name: "KEYS", in: "KEYS *", keys: 40_000},
		{name: "KEYS of many", in: "KEYS *", keys: 80_000, refused: "keys"},
		{name: "KEYS with a usual pattern", in: "KEYS user:*:login", keys: 40_000},
		{name: "KEYS with a part that is searched", in: "KEYS *user:*:login*", keys: 30_000},
		{name: "KEYS with short parts", in: "KEYS *[0-9]*a*", keys: 30_000},
		{name: "KEYS with a long pattern", in: "KEYS *" + strings.Repeat("a", 2000) + "b", keys: 1000},
		{name: "KEYS with a long pattern of long names", in: "KEYS *" + strings.Repeat("a", 2000) + "b*", keys: 1000, nameBytes: 4096, refused: "keys"},
		{name: "KEYS with a costly pattern", in: "KEYS *" + strings.Repeat("?", 2000) + "b*", keys: 10_000, refused: "keys"},
		{name: "KEYS with a long class", in: "KEYS *[" + strings.Repeat("*", 2000) + "]b", keys: 1000},
		{name: "many KEYS with patterns that take long to read", in: strings.Repeat("KEYS *"+strings.Repeat("?", 100)+"*\n", 100), keys: 1, refused: "keys"},
		{name: "KEYS of long names", in: "KEYS *", keys: 2000, nameBytes: 4096, refused: "keys"},
		{name: "SCAN", in: "SCAN 0", keys: 10_000_000},
		{name: "SCAN of much", in: "SCAN 0 COUNT 1000000", keys: 10_000_000, refused: "scan"},
		{name: "SCAN of much, and little there", in: "SCAN 0 COUNT 1000000", keys: 1000},
		{name: "SCAN with a long pattern", in: "SCAN 0 COUNT 1000 MATCH *" + strings.Repeat("a", 2000) + "b", keys: 1000},
		{name: "SCAN with a costly pattern", in: "SCAN 0 COUNT 1000 MATCH *" + strings.Repeat("?", 2000) + "b*", keys: 1000, nameBytes: 4096, refused: "scan"},
		{name: "many SCANs", in: strings.Repeat("SCAN 0\n", 100), keys: 1_000_000, refused: "scan"},
		{name: "FLUSHDB", in: "FLUSHDB", keys: 40_000},
		{name: "FLUSHDB of many", in: "FLUSHDB", keys: 80_000, refused: "flushdb"},
		{name: "FLUSHDB of long names", in: "FLUSHDB", keys: 5000, nameBytes: 4096},
		{name: "FLUSHDB of many long names", in: "FLUSHDB", keys: 10_000, nameBytes: 4096, refused: "flushdb"},
		{name: "FLUSHALL of many", in: "FLUSHALL", keys: 10_000_000},
		{name: "INFO", in: "INFO keyspace", keys: 200_000},
		{name: "INFO of many", in: "INFO keyspace", keys: 300_000, refused: "info"},
		{name: "holds beside KEYS", in: "KEYS *\nCL.MRESERVE 2 a k 1 b k 1 TTL 1s\nCL.MCOMMIT x 2 a k 1 b k 1\nCL.MEXTEND x 1s 1 a k", keys: 10_000},
		{name: "many holds beside KEYS", in: "KEYS *" + strings.Repeat("\nCL.MRESERVE 8 a 1 1 a 2 1 a 3 1 a 4 1 a 5 1 a 6 1 a 7 1 a 8 1 TTL 1s", 5), keys: 10_000, refused: "cl.mreserve"},
		{name: "a key's memory", in: "MEMORY USAGE k", keys: 10_000_000},
		{name: "all keys, and many keys", in: "MEMORY USAGE k\nDEL" + strings.Repeat(" k", 20_000), refused: "del"},
		{name: "all keys, and few keys", in: "MEMORY USAGE k\nDEL" + strings.Repeat(" k", 2000)},
		{name: "long arguments", in: "MEMORY USAGE k\nECHO " + strings.Repeat("x", 6_000_000), refused: "echo"},
		{name: "what cannot be repeated", in: "CLIENT SETNAME x\n" + strings.Repeat("CL.THROTTLE k 1 1 1\n", 2000)},
		{name: "much that cannot be repeated", in: "CLIENT SETNAME x\n" + strings.Repeat("CL.THROTTLE k 1 1 1\n", 6000), refused: "cl.throttle"},
		{name: "all clients", in: "EXISTS k\nCLIENT LIST", clients: 100},
		{name: "very many clients", in: "EXISTS k\nCLIENT LIST", clients: 10_000, refused: "client|list"},
		{name: "documents", in: "EXISTS k\n" + strings.Repeat("COMMAND DOCS\n", 100), refused: "command|docs"},
	} {
		s := storeWith{shard.New(), 2 * tt.keys, max(16, tt.nameBytes) * tt.keys}
		stage := Stage{Store: s, Txs: s, Now: func() int64 { return 1 }, Clients: func() int { return tt.clients }, MaxKeyBytes: 4096}
		done := false
		err := planOf(t, tt.in).Hold(stage, MaxHeldSteps, func(*Space) Verdict {
			done = true
			return Keep
		})
		if tt.refused == "" && (err != nil || !done) || tt.refused != "" && (err == nil || done || !strings.Contains(err.Error(), "'"+tt.refused+"'")) {
			t.Errorf("%s: %v, and done is %v", tt.name, err, done)
		}
	}
}

// TestStoreThatHasGrown: what the store holds is asked again when nobody else is there.
func TestStoreThatHasGrown(t *testing.T) {
	s := shard.New()
	stage := Stage{Store: storeWith{s, 1, 1}, Txs: grows{s}, Now: func() int64 { return 1 }, Clients: func() int { return 0 }}
	err := planOf(t, "DBSIZE").Hold(stage, MaxHeldSteps, func(*Space) Verdict {
		t.Error("done")
		return Keep
	})
	if err == nil {
		t.Error("not refused")
	}
	s.BeginAll(1).End() // which would wait for ever if it had not ended
}

// grows is a store that is large when it is all of a transaction's.
type grows struct{ *shard.Store }

func (g grows) BeginAll(nowNs int64) store.Exclusive { return large{g.Store.BeginAll(nowNs)} }

type large struct{ store.Exclusive }

func (large) UpdateStats(st *store.Stats) { st.Slots = 1_000_000 }

// TestSnapshots says which plans are carried out on snapshots.
func TestSnapshots(t *testing.T) {
	const script = "EVAL x 1 k\n"
	many := func(n int) string { return strings.Repeat("CL.THROTTLE k 1 1 1\n", n) }
	for _, tt := range []struct {
		name, in     string
		snapshots    bool
		mayBeStopped bool
	}{
		{"few", many(1000), false, true},
		{"many", many(1001), true, true},
		{"many keys", "DEL" + strings.Repeat(" k", 1001), true, true},
		{"few that take long", strings.Repeat("CL.COMMIT k 1 1\n", 80), false, true},
		{"many that take long", strings.Repeat("CL.COMMIT k 1 1\n", 200), true, true},
		{"a script", script, true, true},
		{"many, once", many(1001) + "CLIENT SETNAME x\n", false, false},
		{"a script, once", script + "CLIENT SETNAME x\n", false, false},
		{"all keys", script + "DBSIZE\n", false, true},
		{"no keys, once", "CLIENT SETNAME x\n", true, false},
	} {
		p := planOf(t, tt.in)
		if p.OnSnapshots() != tt.snapshots || p.MayEnd() != tt.mayBeStopped {
			t.Errorf("%s: on snapshots %v, may be stopped %v", tt.name, p.OnSnapshots(), p.MayEnd())
		}
	}
}

// TestWhatWaitsForADisk is carried out where nobody waits for it.
func TestWhatWaitsForADisk(t *testing.T) {
	for _, in := range []string{"CL.LIMIT SET a 1 1 1", "CL.LIMIT DEL a", "CL.LIMIT RELOAD"} {
		if !planOf(t, in).Long {
			t.Errorf("%s is not long", in)
		}
	}
}

func TestTooManyKeys(t *testing.T) {
	keys := make([]store.Key, 2*MaxKeys)
	for i := range keys {
		keys[i].Name = fmt.Appendf(nil, "%d", i/2)
	}
	if err := CheckKeys(keys); err != nil {
		t.Errorf("as many as may be, each twice: %v", err)
	}
	if err := CheckKeys(append(keys, store.Key{Name: []byte("0"), DB: 1})); err == nil {
		t.Error("one more is not refused")
	}
}

// TestPatternsThatAreNotRead: what takes too long to compile is refused without that, and without a reply
// that is wrong.
func TestPatternsThatAreNotRead(t *testing.T) {
	p := planOf(t, strings.Repeat("KEYS "+strings.Repeat("*?", 1000)+"\n", 1000))
	p.readPatterns()
	if n := len(p.patterns); n > 2 {
		t.Errorf("%d are read", n)
	}
	s := shard.New()
	stage := Stage{Store: s, Txs: s, Now: func() int64 { return 1 }, Clients: func() int { return 1 }}
	if err := p.Hold(stage, MaxHeldSteps, func(*Space) Verdict { return Keep }); err == nil {
		t.Error("not refused")
	}
}

// TestWatchedKeys take a part of what a transaction on a snapshot may have, and nothing of one that others
// wait for.
func TestWatchedKeys(t *testing.T) {
	watched := make([]store.Key, 10_000)
	for i := range watched {
		watched[i].Name = fmt.Appendf(nil, "w%d", i)
	}
	calls := func(n int) *Plan {
		steps := planOf(t, strings.Repeat("CL.THROTTLE k 1 1 1\n", n)).steps
		for i := range steps {
			steps[i].Args[1] = fmt.Appendf(nil, "k%d", i)
		}
		return NewPlan(steps, 0, 16, watched)
	}
	if p := calls(5000); p.CheckKeys() != nil || len(p.Keys()) != 15_000 {
		t.Errorf("with 5000 keys: %v, and %d keys", p.CheckKeys(), len(p.Keys()))
	}
	if err := calls(5001).CheckKeys(); err == nil {
		t.Error("with 5001 keys: not refused")
	}
	s := shard.New()
	stage := Stage{Store: s, Txs: s, Now: func() int64 { return 1 }, Clients: func() int { return 1 }}
	if err := calls(1).Hold(stage, MaxHeldSteps, func(*Space) Verdict { return Keep }); err != nil {
		t.Error(err)
	}
}
