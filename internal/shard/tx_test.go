package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// TestTxEndedKnowsNoKeys: names may be reused by then. A panicked transaction can be rolled back.
func TestTxEndedKnowsNoKeys(t *testing.T) {
	s, k := New(), key(0, "k")
	for name, end := range map[string]func(tx store.Transaction){
		"committed":              func(tx store.Transaction) { tx.Commit() },
		"rolled back":            store.Transaction.Rollback,
		"released and committed": func(tx store.Transaction) { tx.Release(); tx.Commit() },
	} {
		tx := s.Begin(t0, []store.Key{k})
		end(tx)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it did not panic", name)
				}
			}()
			remove(tx, t0, k)
		}()
		tx.Rollback()
		s.BeginAll(t0).End() // all locks are free
	}
}

// TestTxReleasedAndTables: what happens to the tables between Release and Commit.
func TestTxReleasedAndTables(t *testing.T) {
	a, l := key(0, "a"), limit(t, 9, 1, 60)
	for _, tt := range []struct {
		name   string
		mean   func(s *Store) // meanwhile
		do     func(tx store.Transaction)
		want   bool
		wantNs int64 // of the key, after t0
	}{
		{"swept, and live when it began", func(s *Store) { sweepOnce(s, t0+60*sec) }, func(tx store.Transaction) { one(tx, t0, a, l, 2) }, false, 0},
		{"swept too early to remove it", func(s *Store) { sweepOnce(s, t0+59*sec) }, func(tx store.Transaction) { one(tx, t0, a, l, 2) }, true, 180 * sec},
		{"split", func(s *Store) { fill(t, s, t0, 30_000, "k", 60) }, func(tx store.Transaction) { one(tx, t0, a, l, 2) }, true, 180 * sec},
		// Written-back states are not compared with the found ones.
		{"written and given back", func(s *Store) { remove(s, t0, a) }, func(tx store.Transaction) { one(tx, t0, a, l, 1); one(tx, t0, a, l, -1) }, false, 0},
	} {
		s := newStore(4)
		put(t, s, t0, a, 60)
		tx := s.Begin(t0, []store.Key{a, key(0, "b")})
		tx.Release()
		tt.mean(s)
		tt.do(tx)
		if got := tx.Commit(); got != tt.want {
			t.Errorf("%s: Commit: got %v, want %v", tt.name, got, tt.want)
		}
		if got, _ := tatOf(s, t0, a); got != t0+tt.wantNs {
			t.Errorf("%s: the key's TAT: got %d, want %d", tt.name, got-t0, tt.wantNs)
		}
	}
}

func BenchmarkTx(b *testing.B) {
	l := limit(b, 1<<20, 1, 3600)
	for _, n := range []int{1, 2, 8} {
		for _, release := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/release=%v", n, release), func(b *testing.B) {
				s, keys := New(), make([]store.Key, n)
				for i := range keys {
					keys[i] = key(0, fmt.Sprint("user:", i))
				}
				batch := make([]store.Request, n)
				for i := range batch {
					batch[i] = store.Request{Key: keys[i], Rule: limiter.OfFunnel(l), Quantity: 1}
				}
				b.ReportAllocs()
				for b.Loop() {
					tx := s.Begin(t0, keys)
					if release {
						tx.Release()
					}
					tx.Throttle(t0, batch)
					tx.Commit()
				}
			})
		}
	}
}

// TestTxHoldsSoMuch: payloads of a transaction are bounded, and refused ones unchanged.
func TestTxHoldsSoMuch(t *testing.T) {
	const payload = 60 << 10
	s, keys := New(), make([]store.Key, 2*txPayloadBytes/payload)
	add := limiter.Operation{Verb: limiter.Renew, ID: 1, TTLNs: 2 * sec}
	held := make([]byte, payload)
	binary.LittleEndian.PutUint64(held, 1)
	for at := 0; at < payload; at += 16 {
		binary.LittleEndian.PutUint64(held[at+8:], uint64(t0+60*sec))
	}
	for i := range keys {
		keys[i] = key(0, fmt.Sprint(i))
		if _, _, err := store.SetIf(s, t0, keys[i], limiter.State{Kind: limiter.Concurrency, ExpiresNs: t0 + 60*sec, Payload: held}, store.Always); err != nil {
			t.Fatal(err)
		}
	}
	for _, release := range []bool{false, true} {
		tx, done, refused := s.begin(t0, keys), 0, 0
		if release {
			tx.Release()
		}
		for i, k := range keys {
			var err error
			switch i % 3 {
			case 0:
				o := add
				err = tx.Apply(t0, k, &o)
			case 1:
				_, _, err = tx.State(t0, k)
			default:
				_, _, err = store.SetIf(tx, t0, k, limiter.State{ExpiresNs: t0 + sec}, store.IfAbsent)
			}
			switch {
			case err == nil:
				done++
			case errors.Is(err, store.ErrTooLarge):
				refused++
			default:
				t.Fatal(err)
			}
		}
		if tx.held > txPayloadBytes || tx.held < txPayloadBytes-payload || done+refused != len(keys) || refused < len(keys)/3 {
			t.Errorf("%d bytes are held, %d calls are done, %d refused", tx.held, done, refused)
		}
		undo := tx.Save()
		if n, _ := tx.Delete(t0, keys); n != len(keys) || tx.held != 0 {
			t.Errorf("%d are deleted, and %d bytes held", n, tx.held)
		}
		undo()
		if !tx.Commit() {
			t.Error("not committed")
		}
	}
}
