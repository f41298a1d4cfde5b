package remote

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/store/storetest"
	"cellserver/internal/test/redistest"
)

// manyDBs presents a store of one database as many, with the number in each name. Results have those names.
type manyDBs struct{ *Store }

func within(key store.Key) store.Key {
	return store.Key{Name: append(binary.BigEndian.AppendUint16(nil, key.DB), key.Name...)}
}

func withinAll(keys []store.Key) []store.Key {
	as := make([]store.Key, len(keys))
	for i := range keys {
		as[i] = within(keys[i])
	}
	return as
}

func outside(key store.Key) store.Key {
	return store.Key{DB: binary.BigEndian.Uint16(key.Name), Name: key.Name[2:]}
}

// namesPending answers with the names of manyDBs.
type namesPending struct{ store.Pending }

func (p namesPending) Answers() (answered []store.Request, ok bool) {
	if answered, ok = p.Pending.Answers(); ok {
		answered = append([]store.Request(nil), answered...)
		for i := range answered {
			answered[i].Key = outside(answered[i].Key)
		}
	}
	return answered, ok
}

func (m manyDBs) Throttle(nowNs int64, batch []store.Request) store.Pending {
	as := append([]store.Request(nil), batch...)
	for i := range as {
		as[i].Key = within(as[i].Key)
	}
	if p := m.Store.Throttle(nowNs, as); p != nil {
		return namesPending{p}
	}
	for i := range as {
		batch[i].Quantity, batch[i].Result, batch[i].Err = as[i].Quantity, as[i].Result, as[i].Err
	}
	return nil
}

func (m manyDBs) Apply(nowNs int64, key store.Key, step store.Step) error {
	return m.Store.Apply(nowNs, within(key), step)
}

func (m manyDBs) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	return m.Store.Entry(nowNs, within(key))
}

func (m manyDBs) State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
	return m.Store.State(nowNs, within(key))
}

func (m manyDBs) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	return m.Store.Delete(nowNs, withinAll(keys))
}

func (m manyDBs) Scan(ctx context.Context, nowNs int64, cursor uint64, count int, visit func(key store.Key, e store.Entry)) (next uint64, err error) {
	return m.Store.Scan(ctx, nowNs, cursor, count, func(key store.Key, e store.Entry) { visit(outside(key), e) })
}

func (m manyDBs) Begin(ctx context.Context, nowNs int64, keys []store.Key) (store.RemoteTransaction, error) {
	tx, err := m.Store.Begin(ctx, nowNs, withinAll(keys))
	if err != nil {
		return nil, err
	}
	return manyDBsTx{tx}, nil
}

type manyDBsTx struct{ store.RemoteTransaction }

func (m manyDBsTx) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := batch[i]
		q.Key = within(q.Key)
		one := []store.Request{q}
		if m.RemoteTransaction.Throttle(nowNs, one) != nil {
			panic("a transaction answers later")
		}
		batch[i].Quantity, batch[i].Result, batch[i].Err = one[0].Quantity, one[0].Result, one[0].Err
	}
	return nil
}

func (m manyDBsTx) Apply(nowNs int64, key store.Key, step store.Step) error {
	return m.RemoteTransaction.Apply(nowNs, within(key), step)
}

func (m manyDBsTx) Entry(nowNs int64, key store.Key) (e store.Entry, ok bool, err error) {
	return m.RemoteTransaction.Entry(nowNs, within(key))
}

func (m manyDBsTx) State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
	return m.RemoteTransaction.State(nowNs, within(key))
}

func (m manyDBsTx) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	return m.RemoteTransaction.Delete(nowNs, withinAll(keys))
}

// patient is a timeout for any busy machine.
const patient = 30 * time.Second

var openedStores atomic.Int64 // gives each store its own prefix

// openAt opens an empty store on the caller's clock. %d in the prefix is a number.
func openAt(t *testing.T, url, prefix string) *Store {
	t.Helper()
	prefix = fmt.Sprintf(prefix, openedStores.Add(1))
	return onPool(t, Config{KeyPrefix: prefix, Timeout: patient, CallersTime: true}, url)
}

func TestConformanceOfOneServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := redistest.Server(t)
	storetest.Test(t, func(t *testing.T) store.Store { return manyDBs{openAt(t, "redis://"+p.Addr, "one*[%d]:")} })
}

// TestConformanceOfACluster excludes transactions on several slots. Each store has a cluster of its own, as
// Size counts all keys.
func TestConformanceOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	t.Run("slots", func(t *testing.T) {
		t.Parallel()
		url := redistest.Cluster(t).URL()
		storetest.Test(t, func(t *testing.T) store.Store { return noTransactions{manyDBs{openAt(t, url, "slots%d:")}} })
	})
	t.Run("one slot", func(t *testing.T) {
		t.Parallel()
		url := redistest.Cluster(t).URL()
		storetest.Test(t, func(t *testing.T) store.Store { return manyDBs{openAt(t, url, "{slot%d}:")} })
	})
}

// noTransactions has only store.Store.
type noTransactions struct{ store.Store }
