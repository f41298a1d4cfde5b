package storetest

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"sync/atomic"

	"cellserver/internal/funnel"
	"cellserver/internal/funnel/vectors"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func keyChecks() []check {
	return []check{
		{"long batches", checkLongBatches},
		{"nothing in a batch", checkEmptyBatch},
		{"expiry", checkExpiry},
		{"SetIf: only one makes a key", checkSetIfAbsent},
		{"keys are any bytes, in any database", checkNamesAndDatabases},
		{"names are not kept", checkNames},
		{"concurrent callers", checkConcurrent},
		{"statistics", checkStats},
	}
}

func checkLongBatches(t reporter, s store.Store) {
	r, m := newSource(2, true), stateMap{}
	for round := range int64(60) {
		batch := make([]store.Request, r.IntN(500))
		for i := range batch {
			batch[i] = r.request()
		}
		m.decide(t, s, t0+round*sec, batch)
	}
}

func checkEmptyBatch(t reporter, s store.Store) {
	decide(t, s, t0, nil)
	decide(t, s, t0, []store.Request{})
	wantDeleted(t, s, t0, nil, 0)
}

// checkExpiry: keys expire to the nanosecond, for every operation.
func checkExpiry(t reporter, s store.Store) {
	k, l := key(3, "k"), limit(0, 1, 1)
	for round, at := range []int64{t0, t0 + 10*sec + 1, t0 + 20*sec + 999_999_999} {
		if throttle(t, s, at, k, l, 1).Limited {
			t.Fatalf("round %d: an expired key was limited", round)
		}
		wantTAT(t, s, at, k, at+sec)
		if r := throttle(t, s, at+sec-1, k, l, 1); !r.Limited {
			t.Fatalf("round %d: passed 1 ns too early", round)
		}
		wantTAT(t, s, at+sec-1, k, at+sec)
		wantTAT(t, s, at+sec, k, 0)
		wantDeleted(t, s, at+sec, []store.Key{k}, 0)
		fresh := funnel.Result{Limit: 1, Remaining: 1, RetryAfter: -1}
		if r := throttle(t, s, at+sec, k, l, 0); r != fresh {
			t.Fatalf("round %d: an expired key: got %+v, want %+v", round, r, fresh)
		}
	}
}

// anyNames returns names with shared prefixes, separators and binary bytes.
func anyNames() []string {
	names := []string{"", "\x00", "\x00\x00", "a", "a\x00", "a\x00b", "\xff\xfe", "\xc3", "\xc3\x28", "\r\n", " ", "{a}", "{a}b", "*"}
	for _, n := range []int{7, 8, 15, 16, 17, 18, 31, 32, 255, 256, 257, 4096, 1<<16 - 1, 1 << 16} {
		names = append(names, strings.Repeat("k", n), strings.Repeat("k", n-1)+"\x00")
	}
	return names
}

// checkNamesAndDatabases stores names in databases, deletes every other one, and stores it again.
func checkNamesAndDatabases(t reporter, s store.Store) {
	var keys []store.Key
	for _, db := range []uint16{0, 1, 2, 15, 16, 255, 256, 32767, 65535} {
		for _, name := range append(anyNames(), "\x01\x00") { // this might be database 1
			keys = append(keys, key(db, name))
		}
	}
	l := limit(9999, 1, 60)
	for i, k := range keys {
		throttle(t, s, t0, k, l, int64(1+i))
	}
	for i, k := range keys {
		wantTAT(t, s, t0, k, t0+int64(1+i)*60*sec)
		if i%2 == 0 {
			wantDeleted(t, s, t0, []store.Key{k}, 1)
		}
	}
	for i, k := range keys {
		wantTAT(t, s, t0, k, t0+int64((1+i)*(i%2))*60*sec)
	}
}

// checkNames overwrites names after each call, and batches that are answered later.
func checkNames(t reporter, s store.Store) {
	l := limit(0, 1, 3600)
	for round, n := range []int{1, 8, 16, 17, 100, 5000, 1 << 16} {
		db := uint16(round)
		buf := make([]byte, 3*n)
		write := func() []store.Key {
			keys := make([]store.Key, 3)
			for i := range keys {
				keys[i] = store.Key{DB: db, Name: buf[i*n : (i+1)*n]}
				copy(keys[i].Name, strings.Repeat(string(rune('a'+i)), n))
			}
			return keys
		}
		overwrite := func() { copy(buf, strings.Repeat("z", len(buf))) }
		var batch []store.Request
		for _, k := range write() {
			batch = append(batch, store.Request{Key: k, Rule: limiter.OfFunnel(l), Quantity: 1})
		}
		p := s.Throttle(t0, batch)
		overwrite()
		if p != nil {
			clear(batch)
			wait(t, p)
		}
		wantTAT(t, s, t0, key(db, strings.Repeat("z", n)), 0)
		keys := write()
		for _, k := range keys {
			wantTAT(t, s, t0, k, t0+3600*sec)
		}
		wantDeleted(t, s, t0, keys[:1], 1)
		overwrite()
		wantTAT(t, s, t0, key(db, strings.Repeat("a", n)), 0)
		wantTAT(t, s, t0, key(db, strings.Repeat("b", n)), t0+3600*sec)
	}
}

// checkConcurrent runs callers on a common key and on keys of their own that come and go.
func checkConcurrent(t reporter, s store.Store) {
	const callers, batches, size, burst = 8, 100, 5, 1999
	hot, l := key(0, "hot"), limit(burst, 1, 3600)
	var passed atomic.Int64
	together(t, callers, func(t reporter, g int) {
		own := numbered(1, "own", callers)[g]
		for range batches {
			batch := []store.Request{{Key: own, Rule: limiter.OfFunnel(l), Quantity: 1}}
			for range size {
				batch = append(batch, store.Request{Key: hot, Rule: limiter.OfFunnel(l), Quantity: 1})
			}
			for _, q := range decide(t, s, t0, batch)[1:] {
				if !q.Result.Limited {
					passed.Add(1)
				}
			}
			wantTAT(t, s, t0, own, t0+3600*sec)
			wantDeleted(t, s, t0, []store.Key{own, numbered(2, "absent", callers)[g]}, 1)
		}
	})
	if passed.Load() != burst+1 {
		t.Fatalf("%d of %d requests passed, want %d", passed.Load(), callers*batches*size, burst+1)
	}
}

// checkStats: requests are counted, one by one, in a batch or in a transaction, and added to given figures.
func checkStats(t reporter, s store.Store) {
	got := store.Stats{Allowed: 1000, Limited: 1000, Requested: 1000, Granted: 1000}
	s.UpdateStats(&got)
	for i, k := range numbered(0, "k", 3) {
		var batch []store.Request
		// of 6 units: the second 3, the 7 and the last, which counts as 2^32, are too much
		for _, quantity := range []int64{int64(1 + i), 3, 3, 0, -1, 7, math.MaxInt64} {
			batch = append(batch, store.Request{Key: k, Rule: limiter.OfFunnel(limit(5, 1, 60)), Quantity: quantity})
		}
		switch txs, ok := s.(store.Transactor); {
		case i == 1:
			decide(t, s, t0, batch)
		case i == 2 && ok:
			tx := txs.Begin(t0, []store.Key{k})
			decide(t, tx, t0, batch)
			tx.Commit()
		default:
			for j := range batch {
				decide(t, s, t0, batch[j:j+1])
			}
		}
	}
	s.UpdateStats(&got)
	got = store.Stats{Allowed: got.Allowed, Limited: got.Limited, Requested: got.Requested, Granted: got.Granted}
	if want := (store.Stats{Allowed: 1012, Limited: 1009, Requested: 1045 + 3<<32, Granted: 1015}); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func vectorChecks() []check {
	var all []check
	for _, file := range []string{vectors.WholeMicroseconds, vectors.AnyNanosecond} {
		all = append(all,
			check{"vectors one by one: " + file, func(t reporter, s store.Store) { checkVectors(t, s, file, 1) }},
			check{"vectors in batches: " + file, func(t reporter, s store.Store) { checkVectors(t, s, file, 1000) }})
	}
	return all
}

// checkVectors decides a file's rows, those of one time in batches of up to maxBatch.
func checkVectors(t reporter, s store.Store, file string, maxBatch int) {
	rows, err := vectors.Read(file)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var batch []store.Request
	for done := 0; done < len(rows); done += len(batch) {
		nowNs := rows[done].AtNs
		batch = batch[:0]
		for _, row := range rows[done:] {
			if row.AtNs != nowNs || len(batch) == maxBatch {
				break
			}
			l := limit(row.MaxBurst, row.Count, row.PeriodSec)
			batch = append(batch, store.Request{Key: key(0, row.Key), Rule: limiter.OfFunnel(l), Quantity: row.Quantity})
		}
		for i, q := range decide(t, s, nowNs, batch) {
			row := rows[done+i]
			want := funnel.Result{
				Limited: row.Limited, Limit: row.Limit, Remaining: row.Remaining,
				RetryAfter: row.RetryAfter, ResetAfter: row.ResetAfter,
			}
			if q.Result != want {
				t.Fatalf("line %d: %+v: got %+v", done+i+2, row, q.Result)
			}
		}
	}
}

// wantSetIf sets a key and compares the found TAT; none that has passed.
func wantSetIf(t reporter, ks store.Keys, k store.Key, tatNs int64, when store.Condition, wantNs int64) {
	t.Helper()
	before, found, err := store.SetIf(ks, t0, k, limiter.State{ExpiresNs: tatNs}, when)
	if err != nil || found != (wantNs > t0) || found && before.ExpiresNs != wantNs {
		t.Fatalf("SetIf: found %d, %v, %v, want %d", before.ExpiresNs-t0, found, err, wantNs-t0)
	}
}

// checkSetIfAbsent: of many callers, one creates the key.
func checkSetIfAbsent(t reporter, s store.Store) {
	const callers = 8
	for _, k := range numbered(0, "k", 100) {
		var made atomic.Int64
		together(t, callers, func(t reporter, g int) {
			switch _, found, err := store.SetIf(s, t0, k, limiter.State{ExpiresNs: t0 + int64(1+g)*sec}, store.IfAbsent); {
			case err != nil:
				t.Errorf("SetIf: %v", err)
			case !found:
				made.Add(1)
			}
		})
		if made.Load() != 1 {
			t.Fatalf("%d of %d callers have made a key", made.Load(), callers)
		}
	}
}

// checkRefusesSetIf: a key without space is not created in any way, and an existing one is set.
func checkRefusesSetIf(t reporter, s store.Store) {
	b, txs := need[store.Bounded](t, s), need[store.Transactor](t, s)
	there := key(0, "there")
	put(t, s, t0, there, 60)
	b.SetMaxBytes(1, store.NoEviction)
	refused := 0
	for i := range 300 {
		full := floodKey(i)
		set := func(ks store.Keys) {
			wantSetIf(t, ks, full, t0+sec, store.IfFound, t0)
			if _, found, err := store.SetIf(ks, t0, full, limiter.State{ExpiresNs: t0 + sec}, store.IfAbsent); errors.Is(err, store.ErrFull) {
				wantTAT(t, ks, t0, full, 0)
				refused++
			} else if found || err != nil {
				t.Fatalf("key %d: found %v, %v", i, found, err)
			}
			wantSetIf(t, ks, there, t0+sec, store.Always, tatOf(t, ks, t0, there))
		}
		switch i % 3 {
		case 0:
			set(s)
		case 1:
			tx := txs.Begin(t0, []store.Key{full, there})
			set(tx)
			tx.Commit()
		default:
			x := txs.BeginAll(t0)
			set(x)
			x.End()
		}
	}
	if st := statsOf(s); refused < 3 || st.Refused != uint64(refused) || st.Keys != 301-refused {
		t.Errorf("%d were refused: %+v", refused, st)
	}
}
