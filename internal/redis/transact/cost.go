package transact

import (
	"slices"

	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// A step is about a nanosecond of a processor of 2025. What a transaction takes while others wait is known in steps before
// it begins, from its commands and from what the store holds: a bound that is the same on every machine, and on a busy one.
const (
	// MaxHeldSteps is how long others may have to wait for a transaction: 5 ms.
	MaxHeldSteps = 5_000_000
	// MaxKeys is how many keys a transaction may have that is carried out on snapshots, for they are all compared and
	// written at once.
	MaxKeys = 8000

	// Measured: a command is found, counted and answered in 200 to 400 ns; an argument of a byte or two is copied in 15 ns
	// and a long one, into a reply that grows, with 1 ns a byte. In a store of 4 million keys, out of the processor's cache,
	// a key is looked up in 100 to 195 ns, and compared and written in 215 to 590 ns, if half of the keys are new.
	commandSteps  = 500
	argumentSteps = 20
	lookSteps     = 200
	keySteps      = 600
)

// Figures are what the cost of a transaction depends on besides its commands.
type Figures struct {
	Slots       int // of the store
	NameBytes   int // of its keys
	MaxKeyBytes int
	Clients     int // that are connected
}

// of returns the figures with those of a store.
func (f Figures) of(s interface{ UpdateStats(st *store.Stats) }) Figures {
	var st store.Stats
	s.UpdateStats(&st)
	f.Slots, f.NameBytes = st.Slots, st.NameBytes
	return f
}

// figures returns those that the cost of the plan depends on.
func (p *Plan) figures(s Stage) Figures {
	f := Figures{MaxKeyBytes: s.MaxKeyBytes}
	if slices.ContainsFunc(p.steps, func(s Step) bool { return s.Command.Cost.Client > 0 }) {
		f.Clients = s.Clients() // which takes a lock that is everybody's
	}
	if p.whole {
		p.readPatterns()
		return f.of(s.Store)
	}
	return f
}

// Steps is what the plan takes without its scripts.
func (p *Plan) Steps(s Stage) int { return p.cost(p.figures(s), func(*catalog.Command, int) {}) }

// cost returns what the plan takes, and tells what its commands take.
func (p *Plan) cost(f Figures, tell func(c *catalog.Command, steps int)) (total int) {
	f.Slots += 2 * len(p.keys) // which it may add
	for i := range p.steps {
		s := &p.steps[i]
		f.NameBytes += sizeOf(s.Args)
		steps := s.cost(f, p.patterns[i])
		tell(s.Command, steps)
		total += steps
	}
	return total
}

// fits refuses a plan that takes longer than others should wait.
func (p *Plan) fits(f Figures, most int) error {
	if p.keys == nil && !p.whole { // nobody waits
		return nil
	}
	if p.cost(f, func(*catalog.Command, int) {}) <= most {
		return nil
	}
	each, longest := map[*catalog.Command]int{}, (*catalog.Command)(nil)
	total := p.cost(f, func(c *catalog.Command, steps int) {
		if each[c] += steps; longest == nil || each[c] > each[longest] {
			longest = c
		}
	})
	return reply.TooLongHeld(longest, total, MaxHeldSteps)
}

func sizeOf(args [][]byte) (n int) {
	for _, arg := range args {
		n += len(arg)
	}
	return n
}

// cost is what a step takes, with what its pattern does.
func (s *Step) cost(f Figures, match glob.Cost) int {
	c := &s.Command.Cost
	slots, names := f.Slots, f.NameBytes
	if c.Options {
		slots, names = scanned(s.Args, f)
	}
	steps := commandSteps + argumentSteps*len(s.Args) + sizeOf(s.Args) + c.Call + c.Client*f.Clients + c.Slot*slots + c.KiB*(names>>10)
	s.Command.Keys.Each(s.Args, func([]byte) { steps += keySteps })
	if c.Pattern > 0 || c.Options { // names are compared with a pattern, and copied
		steps += glob.CompileCost(patternOf(c, s.Args)) + match.Of(slots, names) + names
	}
	return steps
}

// readPatterns finds out what the patterns of the steps take. That is not done while others wait, nor for patterns that
// take so long to read that the plan is refused for that alone.
func (p *Plan) readPatterns() {
	if p.patterns != nil {
		return
	}
	p.patterns = map[int]glob.Cost{}
	left := MaxHeldSteps
	for i := range p.steps {
		pattern := patternOf(&p.steps[i].Command.Cost, p.steps[i].Args)
		if left -= glob.CompileCost(pattern); left < 0 {
			return
		}
		if len(pattern) > 0 {
			p.patterns[i] = glob.Compile(pattern).Cost
		}
	}
}

// patternOf returns what a call compares the names of keys with, nil for nothing.
func patternOf(c *catalog.Cost, args [][]byte) []byte {
	if c.Options {
		return option(args, "match")
	}
	if c.Pattern > 0 && c.Pattern < len(args) {
		return args[c.Pattern]
	}
	return nil
}

// option returns the value of an option, nil without it.
func option(args [][]byte, name string) (value []byte) {
	for i := 2; i+1 < len(args); i += 2 {
		if glob.Fold(args[i]) == name {
			value = args[i+1]
		}
	}
	return value
}

// A SCAN looks at no more slots for each piece of its COUNT, however few keys they hold, and visits about as many keys.
const (
	scanPiece      = 1000
	scanPieceSlots = 10_000
)

// scanned returns how many slots a SCAN looks at, and the bytes of the names that it visits.
func scanned(args [][]byte, f Figures) (slots, names int) {
	count := int64(1)
	if value := option(args, "count"); value != nil {
		count, _ = resp.ParseInt(value)
	}
	pieces := int(min(max(count, 1), int64(f.Slots)+1)+scanPiece-1) / scanPiece
	return min(f.Slots, pieces*scanPieceSlots), min(f.NameBytes, pieces*scanPiece*f.MaxKeyBytes)
}
