// Package ahead keeps leases: units of hot funnels that a server on another machine was asked for ahead of the calls that will use
// them. It decides when units are taken, how many, and which call may use which; it sends nothing. A Table is safe for concurrent
// use.
//
// All units that are ever taken from a key lie one behind the other on the line of the key's TAT: a unit that raised it from t
// to t + interval has the slot from t to t + interval. A leased unit may be used until its slot begins, by the latest time
// that the server's clock may show, and is lost afterwards. Then in no window, by the server's clock, the units used by all
// together are more than the capacity and what leaks in the window; docs/SCALING.md has the proof.
package ahead

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/store"
)

// Config is the bounds of leases. What is 0 has a default.
type Config struct {
	Enabled    bool
	MaxUnits   int64         // that are taken at a time, 10,000; never more than an eighth of a capacity
	MaxTime    time.Duration // for which they are kept, a second
	StartAbove int64         // calls of a key a second at this process, from which on it has leases, 100
}

const (
	parts   = 64    // that are locked apart
	maxKeys = 4_096 // that have leases
)

// Ask is how many units to take with the next call of a key's script, beside what that is for; with none it is the zero Ask.
type Ask struct {
	Units int64
	id    uint64
}

// Cut is units to give back: if a key's TAT still is EndNs, it has to become ToNs, or the key to go if that is not after now.
// Otherwise somebody has later slots, and nothing may be done. It may be done late, or not at all.
type Cut struct {
	Name        string
	EndNs, ToNs int64
}

// Table is the leases of a process. A nil Table has none and takes none.
type Table struct {
	config  Config
	maxKeys int64
	seed    maphash.Seed
	keys    atomic.Int64 // that have leases
	asks    atomic.Uint64
	parts   []part
}

type part struct {
	mu     sync.Mutex // guards what follows
	leases map[string]*lease
	calls  sketch
	stats  store.LeaseStats
	_      [64]byte // no two parts' locks share a line
}

// New returns a Table, which is nil if leases are not enabled.
func New(c Config) *Table {
	if !c.Enabled {
		return nil
	}
	orDefault(&c.MaxUnits, 10_000)
	orDefault(&c.MaxTime, time.Second)
	orDefault(&c.StartAbove, 100)
	t := &Table{config: c, maxKeys: maxKeys, seed: maphash.MakeSeed(), parts: make([]part, parts)}
	for i := range t.parts {
		t.parts[i].leases = make(map[string]*lease)
	}
	return t
}

// MaxTime is how long units are kept.
func (t *Table) MaxTime() time.Duration { return t.config.MaxTime }

func orDefault[T int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Take answers a call from a key's lease, and is false if the server has to be asked: there is no lease of this limit, or it has
// less than the quantity, or that is negative. latestServerNs is the latest time that the server's clock may show at the local
// time. The answer tells the funnel as if units that are leased and not used had not been taken; of what others have taken
// since they were, it knows nothing.
func (t *Table) Take(name []byte, l funnel.Limit, unit funnel.Unit, quantity, latestServerNs, localNs int64) (r funnel.Result, ok bool) {
	if t == nil || quantity < 0 || t.keys.Load() == 0 {
		return r, false
	}
	p, _ := t.part(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.leases[string(name)]
	if e == nil || !e.limit.Same(l) {
		return r, false
	}
	e.drop(p, latestServerNs, localNs)
	if e.open < max(quantity, 1) {
		e.ended(&t.config, localNs)
		return r, false
	}
	e.use(quantity)
	e.usedNs = localNs
	p.stats.Used += uint64(quantity)
	_, r = l.ThrottleIn(unit, e.levelTAT(), latestServerNs, 0)
	r.Limited, r.RetryAfter = false, -1
	if e.open == 0 {
		e.ended(&t.config, localNs)
	}
	return r, true
}

// Want returns what to take with a call of a key's script that is about to be sent for so many requests. If it is any, Granted
// has to follow, or never does if there is no reply.
func (t *Table) Want(name []byte, l funnel.Limit, requests int, localNs int64) Ask {
	if t == nil || t.config.most(l) < 2 {
		return Ask{}
	}
	p, hash := t.part(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.leases[string(name)]
	if e == nil {
		if e = t.startLocked(p, name, hash, l, requests, localNs); e == nil {
			return Ask{}
		}
	}
	if !e.limit.Same(l) && !e.become(l, &t.config, localNs) {
		return Ask{}
	}
	e.usedNs = localNs
	if !e.mayAsk(&t.config, localNs) {
		return Ask{}
	}
	e.ask = Ask{Units: e.units - e.open, id: t.asks.Add(1)} // so that never more than a lease's units are open
	e.askedNs = localNs
	p.stats.Asked += uint64(e.ask.Units)
	return e.ask
}

// startLocked returns a lease for a key that is hot, and nil for another.
func (t *Table) startLocked(p *part, name []byte, hash uint64, l funnel.Limit, requests int, localNs int64) *lease {
	if p.calls.add(hash, requests, localNs) < t.config.StartAbove || t.keys.Load() >= t.maxKeys {
		return nil
	}
	e := &lease{name: string(name), limit: l, pace: t.config.slowest(l), usedNs: localNs}
	p.leases[e.name] = e
	t.keys.Add(1)
	return e
}

// Granted says what the server has answered to an Ask at a time by its clock: the TAT from which on units were taken, and how
// many there was room for.
func (t *Table) Granted(name []byte, a Ask, serverNs, fromNs, units int64) {
	if t == nil || a.Units == 0 {
		return
	}
	p, _ := t.part(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Granted += uint64(units)
	e := p.leases[string(name)]
	if e == nil || e.ask != a {
		p.stats.Lost += uint64(units) // it is too late, or the key was forgotten meanwhile
		return
	}
	e.granted(p, &t.config, serverNs, fromNs, min(units, a.Units))
}

// Forget drops a key's lease, because its TAT was, or may have been, set or deleted: a unit that is left out is never too many.
// A refund is no reason.
func (t *Table) Forget(name []byte) {
	if t == nil || t.keys.Load() == 0 {
		return
	}
	p, _ := t.part(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.leases[string(name)]; e != nil {
		p.stats.Lost += uint64(e.open)
		delete(p.leases, e.name)
		t.keys.Add(-1)
	}
}

// Return returns what to give back: the last units of leases whose time is over. They are leased no more. It also frees what
// is not needed any longer, so it has to be called a few times in MaxTime.
func (t *Table) Return(localNs int64) []Cut { return t.giveBack(localNs, false) }

// ReturnAll returns what to give back when the process ends. There are no leases afterwards.
func (t *Table) ReturnAll(localNs int64) []Cut { return t.giveBack(localNs, true) }

func (t *Table) giveBack(localNs int64, all bool) (cuts []Cut) {
	if t == nil || t.keys.Load() == 0 {
		return nil
	}
	for i := range t.parts {
		cuts = t.giveBackPart(&t.parts[i], localNs, all, cuts)
	}
	return cuts
}

func (t *Table) giveBackPart(p *part, localNs int64, all bool, cuts []Cut) []Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, e := range p.leases {
		if all {
			e.expireAll(p)
		} else {
			e.expire(p, localNs)
			e.ended(&t.config, localNs)
		}
		if c, ok := e.cut(); ok {
			p.stats.Returned += uint64((c.EndNs - c.ToNs) / int64(e.limit.IntervalNs()))
			cuts = append(cuts, c)
		}
		if all || e.idle(&t.config, localNs) {
			delete(p.leases, name)
			t.keys.Add(-1)
		}
	}
	return cuts
}

func (t *Table) part(name []byte) (p *part, hash uint64) {
	hash = maphash.Bytes(t.seed, name)
	return &t.parts[hash%parts], hash
}
