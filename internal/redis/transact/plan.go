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

// Plan is what the steps of a transaction need.
type Plan struct {
	Scripts bool // a step is a script, which may take long
	Long    bool // worth a goroutine

	steps   []Step
	keys    []store.Key // of all steps, and behind them those watched, if the plan is carried out on snapshots
	watched int         // how many of them were
	whole   bool        // a step is about all keys
	calls   int         // that the steps take beyond what any does
	once    bool        // a step does more than to change keys, so it must not be executed again
	// patterns are those of the steps that are compared with names, by the numbers of the steps; nil until they are read.
	patterns map[int]glob.Cost
}

const (
	longSteps = 1000 // or keys
	// longCalls leaves as much to what any step does, so that few steps which are not many are refused for the time that others
	// would have to wait.
	longCalls = MaxHeldSteps / 2
)

// NewPlan returns the plan of steps that begin in a database, one of so many, and sets their databases.
func NewPlan(steps []Step, db uint16, databases int, watched []store.Key) *Plan {
	p := &Plan{steps: steps}
	for i := range steps {
		s := &steps[i]
		s.DB = db
		f := s.Command.Flags
		p.whole = p.whole || f&catalog.FlagWhole != 0
		p.Scripts = p.Scripts || f&catalog.FlagScript != 0
		p.once = p.once || f&(catalog.FlagWrite|catalog.FlagReadonly|catalog.FlagScript|catalog.FlagFast) == 0
		p.calls += s.Command.Cost.Call
		p.Long = p.Long || s.Command.Long && s.Command.Keys.First == 0 || len(s.Args) > longSteps
		s.Command.Keys.Each(s.Args, func(name []byte) { p.keys = append(p.keys, store.Key{DB: db, Name: name}) })
		if s.Command.Name == "select" {
			if n, err := argument.Database(s.Args[1], databases); err == nil {
				db = n
			}
		}
	}
	p.Long = p.Long || p.whole || p.Scripts || p.many()
	// Others may change what is watched between a snapshot and its end. Where they wait, that comes behind the transaction.
	if p.keys != nil && p.OnSnapshots() {
		p.keys, p.watched = append(p.keys, watched...), len(watched)
	}
	return p
}

// Refused returns a command that must not be executed while the plan's keys are held, nil if there is none.
func (p *Plan) Refused() *catalog.Command {
	at := slices.IndexFunc(p.steps, func(s Step) bool { return s.Command.Flags&catalog.FlagNotWithKeys != 0 })
	if at < 0 || p.keys == nil && !p.whole {
		return nil
	}
	return p.steps[at].Command
}

// Whole returns a command about all keys, nil if there is none.
func (p *Plan) Whole() *catalog.Command {
	at := slices.IndexFunc(p.steps, func(s Step) bool { return s.Command.Flags&catalog.FlagWhole != 0 })
	if at < 0 {
		return nil
	}
	return p.steps[at].Command
}

// Batched reports whether all steps are requests of limiters, of which each is decided for itself.
func (p *Plan) Batched() bool {
	return !slices.ContainsFunc(p.steps, func(s Step) bool { return !s.Command.Batches })
}

func (p *Plan) many() bool {
	return len(p.steps) > longSteps || len(p.keys) > longSteps || p.calls > longCalls
}

// OnSnapshots reports whether the plan is carried out on snapshots: without keys nobody waits for it, and with keys where
// it may take long, for it has scripts, or many steps or long ones, and can be repeated.
func (p *Plan) OnSnapshots() bool {
	return !p.whole && (p.keys == nil || !p.once && (p.Scripts || p.many()))
}

// MayEnd reports whether an attempt on a snapshot may be left half-way, for nothing has happened then.
func (p *Plan) MayEnd() bool { return !p.once }

// Keys are those of all steps and those watched, of a plan that is carried out on snapshots; of another one those of all steps.
func (p *Plan) Keys() []store.Key { return p.keys }

// CheckKeys is CheckKeys for the plan. A key that is only watched is compared and not written.
func (p *Plan) CheckKeys() error {
	own := p.keys[:len(p.keys)-p.watched]
	return checkKeys(own, min(MaxKeys, (MaxHeldSteps-lookSteps*p.watched)/keySteps))
}

// Hold carries the plan out while others wait for its keys, unless that would take too long: the error says why, and then
// nothing was done. most is how many steps it may take.
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
