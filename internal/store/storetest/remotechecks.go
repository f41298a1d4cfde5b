package storetest

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// remoteChecks are for a store.Remote. Its transactions pass the checks of released ones.
func remoteChecks() []check {
	all := []check{
		{"remote: a conflict changes nothing", checkRemoteConflict},
		{"remote: it begins anew after a conflict", checkRemoteAnew},
		{"remote: nobody is kept out", checkRemoteKeepsNobody},
		{"remote: Abilities", checkRemoteAbilities},
		{"remote: Size", checkRemoteSize},
		{"remote: Scan", checkRemoteScan},
		{"remote: failures are lines", checkFailures},
	}
	for _, c := range append(releasedChecks(), transactionChecks()...) {
		switch c.name {
		case "released transaction: flushed", // it is no Walker
			"transaction: overlapping keys": // it has no locks
		default:
			all = append(all, asReleased(c))
		}
	}
	for _, c := range modelChecks() {
		if strings.HasSuffix(c.name, ", in transactions") {
			all = append(all, asReleased(c))
		}
	}
	return append(all, asReleased(check{"kinds: concurrent callers", checkKindsConcurrent}))
}

// asReleased applies a check of transactions to a Remote's.
func asReleased(c check) check {
	return check{"remote, " + c.name, func(t reporter, s store.Store) {
		c.run(t, remoteAsTransactor{need[store.Remote](t, s), t})
	}}
}

// remoteAsTransactor presents a Remote's transactions as released ones.
type remoteAsTransactor struct {
	store.Remote
	t reporter
}

func (r remoteAsTransactor) Begin(nowNs int64, keys []store.Key) store.Transaction {
	tx, err := r.Remote.Begin(context.Background(), nowNs, keys)
	if err != nil {
		r.t.Fatalf("Begin: %v", err)
	}
	return &releasedRemote{tx, r.t, false}
}

func (r remoteAsTransactor) BeginAll(int64) store.Exclusive {
	r.t.Skipf("a store.Remote has no store.Exclusive")
	return nil
}

type releasedRemote struct {
	store.RemoteTransaction
	t     reporter
	ended bool
}

func (*releasedRemote) Release() {}

func (r *releasedRemote) Rollback() { r.ended = true }

func (r *releasedRemote) Commit() bool {
	if r.ended {
		return false
	}
	r.ended = true
	done, err := r.RemoteTransaction.Commit(context.Background())
	if err != nil {
		r.t.Errorf("Commit: %v", err)
	}
	return done
}

// beginRemote returns a transaction at t0, and skips the check if the store is not Remote.
func beginRemote(t reporter, s store.Store, keys ...store.Key) store.RemoteTransaction {
	t.Helper()
	tx, err := need[store.Remote](t, s).Begin(context.Background(), t0, keys)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return tx
}

func commit(t reporter, tx store.RemoteTransaction) bool {
	t.Helper()
	done, err := tx.Commit(context.Background())
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return done
}

// checkRemoteConflict: after a change of one key of any kind, none is written and nothing counted.
func checkRemoteConflict(t reporter, s store.Store) {
	for kind, a := range makers() {
		keys := []store.Key{key(uint16(kind), "a"), key(uint16(kind), "b"), key(uint16(kind), "c")}
		before := makeKey(t, s, t0, keys[0], kind)
		tx := beginRemote(t, s, keys...)
		put(t, tx, t0, keys[1], 60)
		if a.operation == nil { // repeated operations change nothing
			a.on(t, tx, t0, keys[0])
		}
		put(t, s, t0, keys[2], 30)
		counted := statsOf(s)
		if commit(t, tx) {
			t.Fatalf("kind %d: it was committed", kind)
		}
		if now := statsOf(s); now.Allowed != counted.Allowed || now.Limited != counted.Limited {
			t.Fatalf("kind %d: it was counted", kind)
		}
		wantState(t, s, t0, keys[0], before, true)
		wantTAT(t, s, t0, keys[1], 0)
		wantTAT(t, s, t0, keys[2], t0+30*sec)
	}
}

// checkRemoteAnew: after a conflict the same transaction has the present states of all its keys, without its
// writes, and can be committed.
func checkRemoteAnew(t reporter, s store.Store) {
	a, b, c := key(0, "a"), key(0, "b"), key(0, "c")
	put(t, s, t0, a, 60)
	put(t, s, t0, c, 60)
	tx := beginRemote(t, s, a, b, c)
	for i := range int64(3) {
		put(t, tx, t0, a, 60)
		put(t, tx, t0, b, 60)
		put(t, s, t0, b, 30)
		remove(t, s, t0, c)
		if commit(t, tx) {
			t.Fatalf("it was committed")
		}
		if tx.NowNs() < t0 {
			t.Fatalf("its time went back by %d ns", t0-tx.NowNs())
		}
		wantTAT(t, tx, t0, a, t0+60*sec)
		wantTAT(t, tx, t0, b, t0+(i+1)*30*sec)
		wantTAT(t, tx, t0, c, 0)
		put(t, s, t0, c, 10)
	}
	if put(t, tx, t0, a, 60); commit(t, tx) {
		t.Fatalf("it was committed, though a key had been made that it saw as absent")
	}
	put(t, tx, t0, a, 60)
	put(t, tx, t0, c, 10)
	if !commit(t, tx) {
		t.Fatalf("it was not committed, though nobody had changed a key since the conflict")
	}
	wantTAT(t, s, t0, a, t0+120*sec)
	wantTAT(t, s, t0, b, t0+90*sec)
	wantTAT(t, s, t0, c, t0+20*sec)
}

// checkRemoteKeepsNobody: an unfinished transaction holds up nobody.
func checkRemoteKeepsNobody(t reporter, s store.Store) {
	a := key(0, "a")
	for i := range 5 {
		tx := beginRemote(t, s, a)
		put(t, tx, t0, a, 60)
		wantTAT(t, tx, t0, a, t0+int64(i+1)*60*sec)
		put(t, s, t0, a, 60)
	}
	wantTAT(t, s, t0, a, t0+300*sec)
}

// checkRemoteAbilities: its calls wait for machines, and its transactions hold nothing.
func checkRemoteAbilities(t reporter, s store.Store) {
	if a := need[store.Remote](t, s).Abilities(); a.AtOnce || a != store.AbilitiesOf(s) {
		t.Errorf("it says that it can do %+v", a)
	}
}

func checkRemoteSize(t reporter, s store.Store) {
	r := need[store.Remote](t, s)
	size := func() int {
		n, err := r.Size(context.Background())
		if err != nil {
			t.Fatalf("Size: %v", err)
		}
		return n
	}
	before, keys := size(), numbered(0, "k", 100)
	for _, k := range keys {
		put(t, s, t0, k, 60)
	}
	if n := size(); n != before+len(keys) {
		t.Fatalf("%d keys, and %d more are %d", before, len(keys), n)
	}
	wantDeleted(t, s, t0, keys[:50], 50)
	if n := size(); n != before+50 {
		t.Fatalf("%d keys, want %d", n, before+50)
	}
}

// checkRemoteScan: Scan visits all lasting keys and no absent ones, unless the store is a cluster.
func checkRemoteScan(t reporter, s store.Store) {
	r, m := need[store.Remote](t, s), stateMap{}
	for i, k := range numbered(0, "k", 100) {
		for kind := range makers() {
			k.Name = append(k.Name, byte('a'+kind))
			if i%3 > 0 {
				m[idOf(k)] = makeKey(t, s, t0, k, kind)
			}
		}
	}
	met, cursor := map[string]bool{}, uint64(0)
	for first := true; first || cursor != 0; first = false {
		next, err := r.Scan(context.Background(), t0, cursor, 10, func(k store.Key, e store.Entry) {
			want, live := m[idOf(k)]
			if !live || e != (store.Entry{Kind: want.Kind, ExpiresNs: want.ExpiresNs}) {
				t.Errorf("Scan: %.40q is %+v, want %+v, %v", k.Name, e, want, live)
			}
			met[string(k.Name)] = true
		})
		var f store.Failure
		if errors.As(err, &f) {
			wantLine(t, err)
			t.Skipf("the store is of several machines: %v", err)
		}
		cursor = next
	}
	if len(met) != len(m) {
		t.Fatalf("Scan met %d of %d keys", len(met), len(m))
	}
}

// checkFailures cancels each call that can be canceled.
func checkFailures(t reporter, s store.Store) {
	r, a := need[store.Remote](t, s), key(0, "a")
	tx := beginRemote(t, s, a)
	put(t, tx, t0, a, 60)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.Begin(ctx, t0, []store.Key{a})
	wantLine(t, err)
	done, err := tx.Commit(ctx)
	if done {
		t.Fatalf("it was committed when it was given up")
	}
	wantLine(t, err)
	wantTAT(t, s, t0, a, 0)
	put(t, s, t0, a, 60) // unaffected
	o := limiter.Operation{Verb: limiter.Look}
	if err := s.Apply(t0, a, &o); err != nil || o.AtNs != t0+60*sec {
		t.Fatalf("Look: %d, %v", o.AtNs-t0, err)
	}
}

var failureLine = regexp.MustCompile(`^[A-Z]+ [^\r\n]+$`)

// wantLine expects a Failure of one line with an error code.
func wantLine(t reporter, err error) {
	t.Helper()
	var f store.Failure
	if !errors.As(err, &f) || !failureLine.MatchString(f.Line) || strings.Contains(f.Line, "%!") {
		t.Fatalf("%v is not a Failure with a line for clients", err)
	}
}
