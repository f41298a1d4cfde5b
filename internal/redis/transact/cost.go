package transact

import (
	"slices"

	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// A step is about a nanosecond of a processor of 2025. The cost of a transaction that holds keys is known
// beforehand from its commands and the store's size: a bound independent of machine and load.
const (
	// MaxHeldSteps is the longest time to hold keys: 5 ms.
	MaxHeldSteps = 5_000_000
	// MaxKeys bounds the keys of a transaction on snapshots, which are compared and written at once.
	MaxKeys = 8000

	// Measured: finding, counting and answering a command takes 200 to 400 ns; copying a short argument 15
	// ns, a long one into a growing reply 1 ns a byte. With 4 million keys, beyond the caches, a lookup takes
	// 100 to 195 ns, comparing and writing 215 to 590 ns if half of the keys are new.
	commandSteps  = 500
	argumentSteps = 20
	lookSteps     = 200
	keySteps      = 600
)

// Figures are what the cost depends on besides the commands.
type Figures struct {
	Slots       int // of the store
	NameBytes   int // of the store's keys
	MaxKeyBytes int
	Clients     int // connections
}

// of adds a store's figures.
func (f Figures) of(s interface{ UpdateStats(st *store.Stats) }) Figures {
	var st store.Stats
	s.UpdateStats(&st)
	f.Slots, f.NameBytes = st.Slots, st.NameBytes
	return f
}

// figures returns the figures for the plan's cost.
func (p *Plan) figures(s Stage) Figures {
	f := Figures{MaxKeyBytes: s.MaxKeyBytes}
	if slices.ContainsFunc(p.steps, func(s Step) bool { return s.Command.Cost.Client > 0 }) {
		f.Clients = s.Clients() // takes a global lock
	}
	if p.whole {
		p.readPatterns()
		return f.of(s.Store)
	}
	return f
}

// Steps returns the plan's cost without scripts.
func (p *Plan) Steps(s Stage) int { return p.cost(p.figures(s), func(*catalog.Command, int) {}) }

// cost returns the plan's cost and reports that of each command.
func (p *Plan) cost(f Figures, tell func(c *catalog.Command, steps int)) (total int) {
	f.Slots += 2 * len(p.keys) // possible new ones
	for i := range p.steps {
		s := &p.steps[i]
		f.NameBytes += sizeOf(s.Args)
		steps := s.cost(f, p.patterns[i])
		tell(s.Command, steps)
		total += steps
	}
	return total
}

// fits refuses a plan that would make others wait too long.
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

// cost returns a step's cost, with that of its pattern.
func (s *Step) cost(f Figures, match glob.Cost) int {
	c := &s.Command.Cost
	slots, names := f.Slots, f.NameBytes
	if c.Options {
		slots, names = scanned(s.Args, f)
	}
	steps := commandSteps + argumentSteps*len(s.Args) + sizeOf(s.Args) + s.Command.CostOf(s.Args) + s.Rules + c.Client*f.Clients + c.Slot*slots + c.KiB*(names>>10)
	s.Command.Keys.Each(s.Args, func([]byte) { steps += keySteps })
	if c.Pattern > 0 || c.Options { // names are matched and copied
		steps += glob.CompileCost(patternOf(c, s.Args)) + match.Of(slots, names) + names
	}
	return steps
}

// readPatterns determines the cost of the patterns. It runs before keys are held, and skips patterns that
// alone exceed the bound.
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

// patternOf returns the pattern of a call, or nil.
func patternOf(c *catalog.Cost, args [][]byte) []byte {
	if c.Options {
		return option(args, "match")
	}
	if c.Pattern > 0 && c.Pattern < len(args) {
		return args[c.Pattern]
	}
	return nil
}

// option returns the value of an option, or nil.
func option(args [][]byte, name string) (value []byte) {
	for i := 2; i+1 < len(args); i += 2 {
		if glob.Fold(args[i]) == name {
			value = args[i+1]
		}
	}
	return value
}

// SCAN looks at a bounded number of slots for each piece of COUNT, however sparse, and visits about as many
// keys.
const (
	scanPiece      = 1000
	scanPieceSlots = 10_000
)

// scanned returns the number of slots and the bytes of names that a SCAN covers.
func scanned(args [][]byte, f Figures) (slots, names int) {
	count := int64(1)
	if value := option(args, "count"); value != nil {
		count, _ = resp.ParseInt(value)
	}
	pieces := int(min(max(count, 1), int64(f.Slots)+1)+scanPiece-1) / scanPiece
	return min(f.Slots, pieces*scanPieceSlots), min(f.NameBytes, pieces*scanPiece*f.MaxKeyBytes)
}
