package storetest

import (
	"bytes"
	"runtime"
	"slices"
	"sync"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

func brokenKeys() []broken {
	return []broken{
		{&keepsNames{Store: newMemory()}, "names are not kept"},
		{leavesErr{newMemory()}, "expiry"},
		{leavesResult{newMemory()}, "expiry"},
		{fails{newMemory()}, "a plain map"},
		{decidesBackwards{newMemory()}, "a plain map"},
		{swapsAnswers{newMemory()}, "a plain map"},
		{dropsEnd{newMemory()}, "long batches"},
		{forgivesSmallDebts{newMemory()}, "a plain map"},
		{forgivesSmallDebts{newMemory()}, "vectors one by one: throttle_any_ns.csv"},
		{wholeMilliseconds{newMemory()}, "expiry"},
		{wholeMilliseconds{newMemory()}, "vectors in batches: throttle_any_ns.csv"},
		{mintsBurst{newMemory(), map[id]int64{}}, "a plain map"},
		{probesWrite{newMemory()}, "a plain map"},
		{limitedWrites{newMemory()}, "a plain map"},
		{remembersLimits{newMemory(), map[id]funnel.Limit{}}, "a plain map"},
		{oneDatabase{newMemory()}, "keys are any bytes, in any database"},
		{textNames{newMemory()}, "keys are any bytes, in any database"},
		{deletesOneByOne{newMemory()}, "a plain map"},
		{setsAnyway{newMemory()}, "a plain map"},
		{looksThenSets{newMemory()}, "SetIf: only one makes a key"},
		{losesUpdates{newMemory()}, "concurrent callers"},
		{setsStats{newMemory()}, "statistics"},
	}
}

// keepsNames finds keys by names that it has not copied.
type keepsNames struct {
	store.Store
	keys []store.Key
}

func (s *keepsNames) number(k store.Key, add bool) store.Key {
	i := slices.IndexFunc(s.keys, func(kept store.Key) bool { return kept.DB == k.DB && bytes.Equal(kept.Name, k.Name) })
	if i < 0 {
		i = len(s.keys)
		if add {
			s.keys = append(s.keys, k)
		}
	}
	return numbered(0, "", i+1)[i]
}

func (s *keepsNames) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		k := batch[i].Key
		batch[i].Key = s.number(k, true)
		s.Store.Throttle(nowNs, batch[i:i+1])
		batch[i].Key = k
	}
	return nil
}

func (s *keepsNames) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	return s.Store.State(nowNs, s.number(k, false))
}

type leavesErr struct{ memory }

func (s leavesErr) Throttle(nowNs int64, batch []store.Request) store.Pending {
	before := slices.Clone(batch)
	s.memory.Throttle(nowNs, batch)
	for i := range batch {
		batch[i].Err = before[i].Err
	}
	return nil
}

// leavesResult has none for requests that are limited.
type leavesResult struct{ memory }

func (s leavesResult) Throttle(nowNs int64, batch []store.Request) store.Pending {
	before := slices.Clone(batch)
	s.memory.Throttle(nowNs, batch)
	for i := range batch {
		if batch[i].Result.Limited {
			batch[i].Result = before[i].Result
		}
	}
	return nil
}

// fails answers with an error that it has no reason for.
type fails struct{ memory }

func (s fails) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.memory.Throttle(nowNs, batch)
	batch[len(batch)-1].Err = errStale
	return nil
}

type decidesBackwards struct{ memory }

func (s decidesBackwards) Throttle(nowNs int64, batch []store.Request) store.Pending {
	slices.Reverse(batch)
	s.memory.Throttle(nowNs, batch)
	slices.Reverse(batch)
	return nil
}

type swapsAnswers struct{ memory }

func (s swapsAnswers) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.memory.Throttle(nowNs, batch)
	if last := len(batch) - 1; last > 0 {
		batch[0].Result, batch[last].Result = batch[last].Result, batch[0].Result
	}
	return nil
}

// dropsEnd decides no more than 128 requests of a batch.
type dropsEnd struct{ memory }

func (s dropsEnd) Throttle(nowNs int64, batch []store.Request) store.Pending {
	return s.memory.Throttle(nowNs, batch[:min(len(batch), 128)])
}

type forgivesSmallDebts struct{ memory }

func (s forgivesSmallDebts) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		if tatNs, ok, _ := tatIn(s, nowNs, batch[i].Key); ok && tatNs-nowNs < sec/1000 {
			_, _ = s.Delete(nowNs, []store.Key{batch[i].Key})
		}
	}
	return s.memory.Throttle(nowNs, batch)
}

type wholeMilliseconds struct{ memory }

func (s wholeMilliseconds) Throttle(nowNs int64, batch []store.Request) store.Pending {
	return s.memory.Throttle(nowNs-nowNs%(sec/1000), batch)
}

// mintsBurst lends what a refund gives back beyond an empty funnel.
type mintsBurst struct {
	memory
	credit map[id]int64
}

func (s mintsBurst) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		k, quantity := idOf(q.Key), q.Quantity
		if _, ok, _ := tatIn(s, nowNs, q.Key); !ok && quantity < 0 {
			s.credit[k] = 1
		} else if quantity > 0 && s.credit[k] > 0 {
			s.credit[k]--
			q.Quantity = 0
		}
		s.memory.Throttle(nowNs, batch[i:i+1])
		q.Quantity = quantity
	}
	return nil
}

type probesWrite struct{ memory }

func (s probesWrite) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.memory.Throttle(nowNs, batch)
	for i := range batch {
		if q := batch[i]; q.Quantity == 0 {
			q.Quantity = 1
			s.memory.Throttle(nowNs, []store.Request{q})
		}
	}
	return nil
}

// limitedWrites has those wait longer that come too early.
type limitedWrites struct{ memory }

func (s limitedWrites) Throttle(nowNs int64, batch []store.Request) store.Pending {
	s.memory.Throttle(nowNs, batch)
	for _, q := range batch {
		if q.Result.Limited {
			s.memory.Throttle(nowNs, []store.Request{{Key: q.Key, Rule: limiter.OfFunnel(limit(99, 1, 1)), Quantity: 1}})
		}
	}
	return nil
}

type remembersLimits struct {
	memory
	limits map[id]funnel.Limit
}

func (s remembersLimits) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		q := &batch[i]
		l, ok := s.limits[idOf(q.Key)]
		if !ok {
			l = q.Rule.Funnel
			s.limits[idOf(q.Key)] = l
		}
		s.memory.Throttle(nowNs, []store.Request{{Key: q.Key, Rule: limiter.OfFunnel(l), Quantity: q.Quantity}})
		q.Err = nil
		_, q.Result = q.Rule.Funnel.Throttle(0, nowNs, 0)
	}
	return nil
}

// oneDatabase has all keys in one.
type oneDatabase struct{ memory }

func (s oneDatabase) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		db := batch[i].Key.DB
		batch[i].Key.DB = 0
		s.memory.Throttle(nowNs, batch[i:i+1])
		batch[i].Key.DB = db
	}
	return nil
}

func (s oneDatabase) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	return s.memory.State(nowNs, store.Key{Name: k.Name})
}

// textNames ends names at a NUL.
type textNames struct{ memory }

func (s textNames) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		name := batch[i].Key.Name
		batch[i].Key.Name, _, _ = bytes.Cut(name, []byte{0})
		s.memory.Throttle(nowNs, batch[i:i+1])
		batch[i].Key.Name = name
	}
	return nil
}

func (s textNames) State(nowNs int64, k store.Key) (limiter.State, bool, error) {
	k.Name, _, _ = bytes.Cut(k.Name, []byte{0})
	return s.memory.State(nowNs, k)
}

// deletesOneByOne counts a key as often as it is named.
type deletesOneByOne struct{ memory }

func (s deletesOneByOne) Delete(nowNs int64, keys []store.Key) (deleted int, err error) {
	for _, k := range keys {
		if _, ok, _ := tatIn(s, nowNs, k); ok {
			deleted++
		}
	}
	_, err = s.memory.Delete(nowNs, keys)
	return deleted, err
}

// setsAnyway asks for no condition.
type setsAnyway struct{ memory }

func (s setsAnyway) Apply(nowNs int64, k store.Key, step store.Step) error {
	if w, is := step.(*store.Setting); is {
		w.When = store.Always
	}
	return s.memory.Apply(nowNs, k, step)
}

// looksThenSets lets others at the key in between.
type looksThenSets struct{ memory }

func (s looksThenSets) Apply(nowNs int64, k store.Key, step store.Step) error {
	w, is := step.(*store.Setting)
	if !is {
		return s.memory.Apply(nowNs, k, step)
	}
	w.Before, w.Found, _ = s.State(nowNs, k)
	runtime.Gosched()
	if w.When.Holds(w.Found) {
		_, _, _ = store.SetIf(s.memory, nowNs, k, w.To, store.Always)
	}
	return nil
}

// losesUpdates reads a state, lets others at it, and writes it.
type losesUpdates struct{ memory }

func (s losesUpdates) Throttle(nowNs int64, batch []store.Request) store.Pending {
	for i := range batch {
		tatNs, ok, _ := tatIn(s, nowNs, batch[i].Key)
		if !ok {
			tatNs = nowNs
		}
		tatNs, batch[i].Result = batch[i].Rule.Funnel.Throttle(tatNs, nowNs, batch[i].Quantity)
		batch[i].Err = nil
		runtime.Gosched()
		tx := s.Begin(nowNs, []store.Key{batch[i].Key})
		_, _, _ = store.SetIf(tx, nowNs, batch[i].Key, limiter.State{ExpiresNs: tatNs}, store.Always)
		tx.Commit()
	}
	return nil
}

type setsStats struct{ memory }

func (s setsStats) UpdateStats(st *store.Stats) {
	*st = store.Stats{}
	s.memory.UpdateStats(st)
}

func brokenPending() []broken {
	return []broken{
		{broke(func(p store.Pending) store.Pending { return wakesTwice{p} }), "answers that come later: one wake"},
		{broke(func(p store.Pending) store.Pending { return wakesEarly{p} }), "answers that come later: one wake"},
		{broke(func(p store.Pending) store.Pending { return answersBackwards{p} }), "long batches"},
		{broke(func(p store.Pending) store.Pending { return answersOnce{Pending: p, once: new(sync.Once)} }), "answers that come later: one wake"},
		{broke(func(p store.Pending) store.Pending { return wakesAgain{p, new(func())} }), "answers that come later: canceled"},
		{&decidesInPlace{memory: newMemory()}, "names are not kept"},
	}
}

// brokenLater is a LaterStore with another Pending.
type brokenLater struct {
	*LaterStore
	of func(p store.Pending) store.Pending
}

func broke(of func(p store.Pending) store.Pending) brokenLater {
	return brokenLater{Later(newMemory()), of}
}

func (s brokenLater) Throttle(nowNs int64, batch []store.Request) store.Pending {
	return s.of(s.LaterStore.Throttle(nowNs, batch))
}

type wakesTwice struct{ store.Pending }

func (p wakesTwice) Notify(wake func()) { p.Pending.Notify(func() { wake(); wake() }) }

// wakesEarly wakes before the answers are there.
type wakesEarly struct{ store.Pending }

func (p wakesEarly) Notify(wake func()) { wake() }

type answersBackwards struct{ store.Pending }

func (p answersBackwards) Answers() ([]store.Request, bool) {
	answered, ok := p.Pending.Answers()
	answered = slices.Clone(answered)
	slices.Reverse(answered)
	return answered, ok
}

// answersOnce has nothing to say the second time.
type answersOnce struct {
	store.Pending
	once *sync.Once
}

func (p answersOnce) Answers() (answered []store.Request, ok bool) {
	p.once.Do(func() { answered, ok = p.Pending.Answers() })
	return answered, ok
}

// wakesAgain wakes when it is canceled, even if it did before.
type wakesAgain struct {
	store.Pending
	wake *func()
}

func (p wakesAgain) Notify(wake func()) {
	*p.wake = wake
	p.Pending.Notify(wake)
}

func (p wakesAgain) Cancel() {
	p.Pending.Cancel()
	if *p.wake != nil {
		(*p.wake)()
		(*p.wake)()
	}
}

// decidesInPlace answers later, in the caller's batch.
type decidesInPlace struct{ memory }

func (s *decidesInPlace) Throttle(nowNs int64, batch []store.Request) store.Pending {
	return &inPlace{s: s.memory, nowNs: nowNs, batch: batch}
}

type inPlace struct {
	s     memory
	nowNs int64
	batch []store.Request
}

func (p *inPlace) Notify(wake func()) {
	p.s.Throttle(p.nowNs, p.batch)
	wake()
}
func (p *inPlace) Answers() ([]store.Request, bool) { return p.batch, true }
func (p *inPlace) Cancel()                          {}
