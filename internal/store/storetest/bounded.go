package storetest

import (
	"errors"
	"strconv"
	"strings"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func boundedChecks() []check {
	return []check{
		{"bounded: evicts", unraced(checkEvicts)},
		{"bounded: evicts what expires soon", unraced(checkEvictsSoonest)},
		{"bounded: refuses", unraced(checkRefuses)},
		{"bounded: refuses in a transaction", checkRefusesInTransaction},
		{"bounded: refuses SetIf", checkRefusesSetIf},
	}
}

const (
	boundBytes = 512 << 10
	// boundSlack is the permitted excess, about a segment for each part of a store.
	boundSlack = 256 << 10
	floodKeys  = 20_000
)

// floodKey names keys, short ones and some long ones.
func floodKey(i int) store.Key {
	return key(0, strconv.Itoa(i)+strings.Repeat("-", i%50*(i%7)))
}

func statsOf(s store.Store) (st store.Stats) {
	s.UpdateStats(&st)
	return st
}

// checkEvicts floods a store: it stays within its bound, refuses nothing, and each key is present or counted
// as evicted.
func checkEvicts(t reporter, s store.Store) {
	need[store.Bounded](t, s).SetMaxBytes(boundBytes, store.VolatileTTL)
	l := limit(0, 1, 3600)
	for i := range floodKeys {
		q := decide(t, s, t0, []store.Request{{Key: floodKey(i), Rule: limiter.OfFunnel(l), Quantity: 1}})[0]
		if q.Result.Limited {
			t.Fatalf("key %d is limited, but new", i)
		}
		if st := statsOf(s); i%1000 == 0 && st.Bytes > boundBytes+boundSlack {
			t.Fatalf("%d bytes after %d keys", st.Bytes, i)
		}
	}
	st, live := statsOf(s), 0
	for i := range floodKeys {
		if _, ok, _ := tatIn(s, t0, floodKey(i)); ok {
			live++
		}
	}
	if live == 0 || live != st.Keys || live+int(st.Evicted) != floodKeys || st.Refused != 0 || st.MaxBytes != boundBytes {
		t.Errorf("%d keys are there, %d are counted, %d evicted, %d refused of %d", live, st.Keys, st.Evicted, st.Refused, floodKeys)
	}
}

// checkEvictsSoonest: few of the keys that live longest, or for good, are evicted until only such are left.
func checkEvictsSoonest(t reporter, s store.Store) {
	need[store.Bounded](t, s).SetMaxBytes(boundBytes, store.VolatileTTL)
	const long = 500
	never := ofOperation(limiter.Operation{Verb: limiter.Fill, Max: 5})
	for i := range long {
		put(t, s, t0, key(1, strconv.Itoa(i)), 7200)
		never.on(t, s, t0, key(2, strconv.Itoa(i)))
	}
	for i := range floodKeys {
		put(t, s, t0, floodKey(i), 60)
		count(1).on(t, s, t0, key(3, strconv.Itoa(i)))
	}
	for db := range uint16(2) {
		lost := 0
		for i := range long {
			if _, ok, _ := s.Entry(t0, key(1+db, strconv.Itoa(i))); !ok {
				lost++
			}
		}
		if lost > long/10 {
			t.Errorf("database %d: %d of %d keys that live longest were evicted", 1+db, lost, long)
		}
	}
	for i := range floodKeys {
		if a := never.on(t, s, t0, key(2, "more"+strconv.Itoa(i))); a.err != nil {
			t.Fatalf("%d that never expire: %v", i, a.err)
		}
	}
	if st := statsOf(s); st.Bytes > boundBytes+boundSlack {
		t.Fatalf("%d bytes", st.Bytes)
	}
}

// checkRefuses: a refused key changes nothing, and existing keys answer as before.
func checkRefuses(t reporter, s store.Store) {
	need[store.Bounded](t, s).SetMaxBytes(boundBytes, store.NoEviction)
	one, m := ofRequest(limiter.OfFunnel(limit(2, 1, 3600)), 1), stateMap{}
	refused := uint64(0)
	for round := range 2 {
		for i := range floodKeys {
			_, live := m.live(t0, floodKey(i))
			if m.ifRoom(t, s, t0, floodKey(i), one) {
				refused++
				if live {
					t.Fatalf("round %d, key %d is there, and refused", round, i)
				}
			}
			m.want(t, s, t0, floodKey(i))
		}
	}
	if st := statsOf(s); refused == 0 || st.Refused != refused || st.Evicted != 0 || st.Bytes > boundBytes+boundSlack || int(st.Allowed) == 0 {
		t.Errorf("%d were refused: %+v", refused, st)
	}
}

// checkRefusesInTransaction: a call without space is refused at once, and the rest committed.
func checkRefusesInTransaction(t reporter, s store.Store) {
	b, txs := need[store.Bounded](t, s), need[store.Transactor](t, s)
	for db, release := range []bool{false, true} {
		b.SetMaxBytes(0, store.NoEviction)
		keys := []store.Key{key(uint16(db), "there")}
		put(t, s, t0, keys[0], 60)
		b.SetMaxBytes(1, store.NoEviction)
		for i := range 1000 { // more than fit into a segment
			keys = append(keys, store.Key{DB: uint16(db), Name: floodKey(i).Name})
		}
		before, l, refused := statsOf(s), limit(9, 1, 600), 0
		tx := txs.Begin(t0, keys)
		defer tx.Rollback()
		if release {
			tx.Release()
		}
		for i, k := range keys {
			batch := []store.Request{{Key: k, Rule: limiter.OfFunnel(l), Quantity: 1}}
			tx.Throttle(t0, batch)
			_, ok, _ := tatIn(tx, t0, k)
			if full := errors.Is(batch[0].Err, store.ErrFull); full == ok || full && i == 0 {
				t.Fatalf("key %d: Err is %v, and it is there: %t", i, batch[0].Err, ok)
			} else if full {
				refused++
			}
		}
		if !tx.Commit() || refused == 0 {
			t.Fatalf("it was not committed, or none of %d refused", refused)
		}
		if st := statsOf(s); st.Keys-before.Keys != len(keys)-1-refused || st.Refused-before.Refused != uint64(refused) || st.Bytes > boundSlack {
			t.Errorf("%d keys were refused, want %d: %+v", st.Refused-before.Refused, refused, st)
		}
	}
}
