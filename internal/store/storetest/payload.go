package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/window"
	"cellserver/internal/store"
)

func payloadChecks() []check {
	return []check{
		{"payloads: watched while the word stays", checkPayloadWatch},
		{"payloads: compared while the word stays", checkPayloadConflict},
		{"payloads: asked for too late", checkPayloadLate},
		{"payloads: frozen", checkPayloadFrozen},
		{"payloads: told and restored", unraced(checkPayloadsRestored)},
		{"payloads: told as they change", unraced(checkPayloadChanges)},
		{"payloads: bounded by eviction", unraced(checkPayloadsEvicted)},
		{"payloads: bounded by refusal", unraced(checkPayloadsRefused)},
	}
}

// count counts units in a fixed window of 100 a minute.
func count(quantity int64) act {
	l := mustWindow(window.NewLimit(funnel.Seconds, 100, 60))
	return ofRequest(limiter.Rule{Kind: limiter.FixedWindow, Packed: l.Packed()}, quantity)
}

func hold(id uint64) act {
	return ofOperation(limiter.Operation{Verb: limiter.Acquire, Max: 4096, ID: id, TTLNs: 60 * sec})
}

// wordStays checks that acts change a key's payload and not its expiry.
func wordStays(t reporter, s store.Store, k store.Key, acts ...act) {
	t.Helper()
	before, _, _ := s.State(t0, k)
	for _, a := range acts {
		a.on(t, s, t0, k)
	}
	if after, _, _ := s.State(t0, k); sameState(before, after) || after.ExpiresNs != before.ExpiresNs {
		t.Fatalf("%+v became %+v", before, after)
	}
}

func checkPayloadWatch(t reporter, s store.Store) {
	watcher := need[store.Watcher](t, s)
	for i, a := range []act{count(3), count(-1), ofOperation(limiter.Operation{Verb: limiter.Add, Quantity: 2, Max: 9})} {
		for _, name := range kindNames() {
			k := key(uint16(i), name)
			ofOperation(limiter.Operation{Verb: limiter.Fill, Max: 5}).on(t, s, t0, k)
			if a.request != nil {
				remove(t, s, t0, k)
				count(9).on(t, s, t0, k)
			}
			w := watcher.Watch(t0, []store.Key{k})
			count(0).on(t, s, t0, k)
			count(99).on(t, s, t0, k)
			ofRequest(limiter.OfFunnel(limit(9, 1, 60)), 1).on(t, s, t0, k)
			_, _, _ = s.State(t0, k)
			if w.Dirty(t0) {
				t.Fatalf("act %d: dirty by what changes nothing", i)
			}
			wordStays(t, s, k, a)
			if !w.Dirty(t0) {
				t.Fatalf("act %d: not dirty", i)
			}
			w.Close()
		}
	}
}

// checkPayloadConflict: a changed payload is a conflict. One that has changed back is none: the transaction
// would do the same now.
func checkPayloadConflict(t reporter, s store.Store) {
	for i, theirs := range [][]act{{count(1)}, {count(1), count(2)}, nil} {
		for _, name := range kindNames() {
			for _, looks := range []bool{false, true} {
				k := key(uint16(i), name)
				remove(t, s, t0, k)
				count(5).on(t, s, t0, k)
				tx := begin(t, s, t0, k, key(9, "other"))
				tx.Release()
				if looks {
					count(1).on(t, tx, t0, k)
				}
				if theirs == nil { // the same word with another payload
					remove(t, s, t0, k)
					count(7).on(t, s, t0, k)
				}
				for _, a := range theirs {
					a.on(t, s, t0, k)
				}
				put(t, tx, t0, key(9, "other"), 60)
				want, _, _ := s.State(t0, k)
				if tx.Commit() {
					t.Fatalf("case %d: it was committed", i)
				}
				wantState(t, s, t0, k, want, true)
			}
		}
	}
}

// checkPayloadLate reads a payload that has changed since: the transaction must fail.
func checkPayloadLate(t reporter, s store.Store) {
	for i, ask := range []func(tx store.Transaction, k store.Key){
		func(tx store.Transaction, k store.Key) { _, _, _ = tx.State(t0, k) },
		func(tx store.Transaction, k store.Key) { count(0).on(t, tx, t0, k) },
		func(tx store.Transaction, k store.Key) { hold(1).on(t, tx, t0, k) },
		func(tx store.Transaction, k store.Key) {
			_, _, _ = store.SetIf(tx, t0, k, limiter.State{ExpiresNs: t0 + sec}, store.IfAbsent)
		},
	} {
		k := key(0, "k"+strconv.Itoa(i))
		count(5).on(t, s, t0, k)
		tx := begin(t, s, t0, k)
		tx.Release()
		if e, ok, _ := tx.Entry(t0, k); !ok || e.Kind != limiter.FixedWindow {
			t.Fatalf("case %d: %+v, %v", i, e, ok)
		}
		count(1).on(t, s, t0, k)
		ask(tx, k)
		if tx.Commit() {
			t.Fatalf("case %d: it was committed", i)
		}
	}
	k := key(1, "only its expiry")
	count(5).on(t, s, t0, k)
	tx := begin(t, s, t0, k)
	defer tx.Rollback()
	tx.Release()
	count(1).on(t, s, t0, k)
	if _, ok, _ := tx.Entry(t0, k); !ok || !tx.Commit() {
		t.Fatalf("a look at a key's kind was not committed")
	}
}

// checkPayloadFrozen: only changes are refused.
func checkPayloadFrozen(t reporter, s store.Store) {
	tracker := need[store.Tracker](t, s)
	for kind, a := range makers() {
		k := key(uint16(kind), "there")
		want := makeKey(t, s, t0, k, kind)
		tracker.Freeze(0, store.ErrFrozen)
		again, answered := a.to(want, t0)
		if got := a.on(t, s, t0, k); sameState(again, want) && got != answered || !sameState(again, want) && !errors.Is(got.err, store.ErrFrozen) {
			t.Errorf("kind %d: %+v while frozen, want %+v", kind, got, answered)
		}
		if got := a.on(t, s, t0, key(uint16(kind), "absent")); !errors.Is(got.err, store.ErrFrozen) {
			t.Errorf("kind %d: a new key is %+v while frozen", kind, got)
		}
		wantState(t, s, t0, k, want, true)
		tracker.Freeze(store.Never, nil)
	}
}

// fillKinds makes short and long keys of all kinds.
func fillKinds(t reporter, s store.Store, n int) stateMap {
	t.Helper()
	m := stateMap{}
	for i := range n {
		for kind := range makers() {
			for _, name := range kindNames() {
				k := key(uint16(kind), name+strconv.Itoa(i))
				m[idOf(k)] = makeKey(t, s, t0, k, kind)
			}
		}
		k := key(100, "large"+strconv.Itoa(i))
		for id := range uint64(100 * i) {
			hold(id).on(t, s, t0, k)
		}
		if state, ok, _ := s.State(t0, k); ok {
			m[idOf(k)] = state
		}
	}
	return m
}

func (m stateMap) wantAll(t reporter, s store.Store, nowNs int64) {
	t.Helper()
	for i := range m {
		m.want(t, s, nowNs, key(i.db, i.name))
	}
	if st := statsOf(s); st.Keys != len(m) {
		t.Fatalf("%d keys, want %d", st.Keys, len(m))
	}
}

func clone(c store.Change) store.Change {
	c.Key.Name, c.State.Payload = bytes.Clone(c.Key.Name), bytes.Clone(c.State.Payload)
	return c
}

func checkPayloadsRestored(t reporter, s store.Store) {
	tracker, walker := need[store.Tracker](t, s), need[store.Walker](t, s)
	m := fillKinds(t, s, 20)
	var told []store.Change
	tracker.States(context.Background(), t0, func(c store.Change) { told = append(told, clone(c)) }, nil)
	walker.FlushAll()
	const parts = 3
	for part := range parts {
		tracker.Restore(t0, part, parts, told)
	}
	m.wantAll(t, s, t0)
	for i := range told { // other states
		told[i].State = told[(i+1)%len(told)].State
		m[idOf(told[i].Key)] = told[i].State
	}
	for part := range parts {
		tracker.Restore(t0, part, parts, told)
	}
	m.wantAll(t, s, t0)
}

func (m stateMap) follow(t reporter, tracker store.Tracker, nowNs int64) {
	t.Helper()
	if !store.Round(tracker, nowNs, func(c store.Change) {
		if c.Flushed {
			clear(m)
			return
		}
		m.set(nowNs, c.Key, clone(c).State)
	}) {
		t.Fatalf("not all was told")
	}
}

func checkPayloadChanges(t reporter, s store.Store) {
	tracker := need[store.Tracker](t, s)
	tracker.Track(func() {})
	told := stateMap{}
	m := fillKinds(t, s, 10)
	told.follow(t, tracker, t0)
	r, nowNs := newSource(14, false), t0
	for round := range 300 {
		for range 40 {
			nowNs += r.stepNs() / 4
			m.step(t, s, nowNs, r, r.key())
		}
		if told.follow(t, tracker, nowNs); round%10 > 0 {
			continue
		}
		for _, all := range []stateMap{m, told} {
			for i := range all {
				want, isLive := m.live(nowNs, key(i.db, i.name))
				if got, ok := told.live(nowNs, key(i.db, i.name)); ok != isLive || !sameState(got, want) {
					t.Fatalf("%.40q: %+v was told, want %+v", i.name, got, want)
				}
			}
		}
	}
}

// checkPayloadsEvicted: growing payloads evict others.
func checkPayloadsEvicted(t reporter, s store.Store) {
	need[store.Bounded](t, s).SetMaxBytes(boundBytes, store.VolatileTTL)
	r := newSource(15, false)
	for i := range 40_000 {
		k := floodKey(r.IntN(400))
		if a := hold(uint64(i)).on(t, s, t0, k); a.err != nil || a.result.Limited {
			t.Fatalf("holder %d: %+v", i, a)
		}
		if s, ok, _ := s.State(t0, k); !ok || len(s.Payload) == 0 {
			t.Fatalf("holder %d: its key is gone", i)
		}
		if st := statsOf(s); i%1000 == 0 && st.Bytes > boundBytes+boundSlack {
			t.Fatalf("%d bytes after %d holders", st.Bytes, i)
		}
	}
	if st := statsOf(s); st.Evicted == 0 || st.Refused != 0 {
		t.Fatalf("%+v", st)
	}
}

// checkPayloadsRefused: a payload without space to grow is unchanged.
func checkPayloadsRefused(t reporter, s store.Store) {
	b, r, m := need[store.Bounded](t, s), newSource(16, false), stateMap{}
	b.SetMaxBytes(boundBytes, store.NoEviction)
	refused := 0
	for i := range 40_000 {
		k := floodKey(r.IntN(400))
		if m.ifRoom(t, s, t0, k, hold(uint64(i))) {
			refused++
		}
		if i%16 == 0 || i > 39_000 {
			m.want(t, s, t0, k)
		}
	}
	if st := statsOf(s); refused == 0 || st.Refused != uint64(refused) || st.Evicted != 0 || st.Bytes > boundBytes+boundSlack {
		t.Fatalf("%d were refused: %+v", refused, st)
	}
	for i := range 400 { // shrinking is never refused
		k := floodKey(i)
		if was, ok := m.live(t0, k); ok {
			first := binary.LittleEndian.Uint64(was.Payload)
			m.act(t, s, t0, k, ofOperation(limiter.Operation{Verb: limiter.Release, ID: first}))
			m.want(t, s, t0, k)
		}
	}
}
