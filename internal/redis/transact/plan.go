package transact

import (
	"hash/maphash"
	"slices"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Plan is the needs of a transaction's steps.
type Plan struct {
	Scripts bool // may take long
	Long    bool // runs on a goroutine

	steps   []Step
	keys    []store.Key // of all steps, then watched ones if the plan runs on snapshots
	watched int         // number of watched keys among keys
	whole   bool        // a step is about all keys
	calls   int         // cost beyond the fixed one of each step
	once    bool        // has effects that must not be repeated
	aside   bool        // its reply was too long for an event loop
	// patterns holds the patterns' costs by step number; nil until they are read.
	patterns map[int]glob.Cost
}

const (
	longSteps = 1000 // as many keys, too
	// longCalls leaves room for the fixed cost of steps, so that short transactions are not refused for the
	// time others would wait.
	longCalls = MaxHeldSteps / 2
)

// NewPlan plans steps that begin in database db, and sets their databases.
func NewPlan(steps []Step, db uint16, databases int, watched []store.Key) *Plan {
	p := &Plan{steps: steps}
	for i := range steps {
		s := &steps[i]
		s.DB = db
		f := s.Command.Flags
		p.whole = p.whole || f&catalog.FlagWhole != 0
		p.Scripts = p.Scripts || f&catalog.FlagScript != 0
		p.once = p.once || f&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript|catalog.FlagFast) == 0
		p.calls += s.Command.CostOf(s.Args) + s.Rules
		p.Long = p.Long || s.Command.Long && s.Command.Keys.First == 0 || len(s.Args) > longSteps
		if f&catalog.FlagNotWithKeys == 0 { // else they name keys without using them
			s.Command.Keys.Each(s.Args, func(name []byte) { p.keys = append(p.keys, store.Key{DB: db, Name: name}) })
		}
		if s.Command.Name == "select" {
			if n, err := argument.Database(s.Args[1], databases); err == nil {
				db = n
			}
		}
	}
	p.Long = p.Long || p.whole || p.Scripts || p.many()
	p.watch(watched)
	return p
}

// watch adds watched keys on a snapshot, as they may change between it and the commit. Where others wait,
// changes come after the transaction.
func (p *Plan) watch(watched []store.Key) {
	if p.keys != nil && p.OnSnapshots() {
		p.keys, p.watched = append(p.keys, watched...), len(watched)
	}
}

// GoAside has a plan on an event loop, whose reply is long, run on a snapshot.
func (p *Plan) GoAside(watched []store.Key) {
	p.aside = true
	p.watch(watched)
}

// Refused returns a command that cannot run while keys are held, or nil.
func (p *Plan) Refused() *catalog.Command {
	if p.keys == nil && !p.whole {
		return nil
	}
	return p.flagged(catalog.FlagNotWithKeys)
}

// Whole returns a command about all keys, or nil.
func (p *Plan) Whole() *catalog.Command { return p.flagged(catalog.FlagWhole) }

func (p *Plan) flagged(flag catalog.Flag) *catalog.Command {
	for i := range p.steps {
		if c := p.steps[i].Command; c.Flags&flag != 0 {
			return c
		}
	}
	return nil
}

// Batched reports whether all steps are independent requests of limiters.
func (p *Plan) Batched() bool {
	return !slices.ContainsFunc(p.steps, func(s Step) bool { return !s.Command.Batches })
}

func (p *Plan) many() bool {
	return len(p.steps) > longSteps || len(p.keys) > longSteps || p.calls > longCalls
}

// OnSnapshots reports whether the plan runs on snapshots: without keys, as nobody waits; with keys, if it may
// take long and can be repeated.
func (p *Plan) OnSnapshots() bool {
	return !p.whole && (p.keys == nil || !p.once && (p.Scripts || p.aside || p.many()))
}

// MayEnd reports whether an attempt on a snapshot may stop half-way, as it has had no effect.
func (p *Plan) MayEnd() bool { return !p.once }

// Keys returns the keys of all steps, on snapshots followed by the watched ones.
func (p *Plan) Keys() []store.Key { return p.keys }

// CheckKeys checks the plan's number of keys. A watched key is compared and not written.
func (p *Plan) CheckKeys() error {
	own := p.keys[:len(p.keys)-p.watched]
	return checkKeys(own, min(MaxKeys, (MaxHeldSteps-lookSteps*p.watched)/keySteps))
}

// Hold carries out the plan while others wait for its keys. If that would exceed most steps, it does nothing
// and returns the reason.
func (p *Plan) Hold(s Stage, most int, do func(in *Space) Verdict) error {
	f := p.figures(s)
	if err := p.fits(f, most); err != nil {
		return err
	}
	if !p.whole {
		s.Hold(p.keys, do)
		return nil
	}
	nowNs := s.Now()
	all := s.Txs.BeginAll(nowNs)
	defer all.End()
	if err := p.fits(f.of(all), most); err != nil { // the store may have grown
		return err
	}
	do(&Space{Keys: all, All: all, NowNs: nowNs, Held: true})
	return nil
}

// CheckKeys refuses more keys than can be read, compared and written while others wait.
func CheckKeys(keys []store.Key) error { return checkKeys(keys, MaxKeys) }

func checkKeys(keys []store.Key, most int) error {
	if len(keys) <= most {
		return nil
	}
	seen, seed := make(map[uint64]struct{}, most), maphash.MakeSeed()
	for i := range keys {
		if seen[maphash.Bytes(seed, keys[i].Name)+uint64(keys[i].DB)] = struct{}{}; len(seen) > most {
			return reply.TooManyKeys(most)
		}
	}
	return nil
}
