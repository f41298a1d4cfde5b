package limiter

import (
	"slices"
	"strings"

	"cellserver/internal/funnel"
)

// MaxArguments is how many numbers a kind's limit has at most.
const MaxArguments = 3

// Numbers are a limit's, in the order of its kind's arguments.
type Numbers [MaxArguments]int64

// Row is a kind as others know it: a client, a scrape, the live page, a trace.
type Row struct {
	Name     string // in files, and to operators
	Type     string // as TYPE says it
	Encoding string // as OBJECT ENCODING says it

	Command   string // makes keys of the kind, and stands for its decisions; in lower case
	Sub       string // of the command, if it has subcommands
	Option    string // by which the command means this kind, and not the one that needs none
	arguments [MaxArguments]string
	Quantity  string // the command's name for the quantity
	// CountsDenied reports whether the command has COUNTDENIED.
	CountsDenied bool
	Unit         funnel.Unit // of the command's times

	Short string // the name in links and flags of what is decided by its arguments and the time; else empty
	// Endless reports whether keys expire only when they are told to, as by EXPIRE.
	Endless bool
}

// Arguments returns the command's names for a limit's numbers, behind the key. There are none where a request tells no limit.
func (r *Row) Arguments() []string {
	if n := slices.Index(r.arguments[:], ""); n >= 0 {
		return r.arguments[:n]
	}
	return r.arguments[:]
}

// FullCommand returns the command, with its subcommand as the catalog has it.
func (r *Row) FullCommand() string {
	if r.Sub == "" {
		return r.Command
	}
	return r.Command + "|" + r.Sub
}

// Call returns the command as whoever calls it writes it.
func (r *Row) Call() string {
	words := slices.DeleteFunc([]string{r.Command, r.Sub, r.Option}, func(word string) bool { return word == "" })
	return strings.ToUpper(strings.Join(words, " "))
}

// Row returns the kind's row.
func (k Kind) Row() Row { return k.of().row() }

// Type returns the kind's name, as TYPE says it.
func (k Kind) Type() string { return k.Row().Type }

// String returns the kind's name, where those that TYPE calls strings have names of their own.
func (k Kind) String() string { return k.Row().Name }

// KindOf returns the kind of a name.
func KindOf(name string) (k Kind, ok bool) {
	for k := range Kinds {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// kind is what a kind is and does. Its arguments are values, because what a pointer in an indirect call points to is
// allocated.
type kind interface {
	row() Row

	// build returns what a rule has of a limit's numbers. The errors are those of the kind's arithmetic.
	build(s Spec) (Packed, error)
	// numbers is the way back, with a funnel's capacity for max_burst.
	numbers(r Rule) Numbers
	// share changes a rule to that of one of those who divide it up, as funnel.Limit.Share does.
	share(r Rule, share float64) Rule
	// intervalNs is the shortest in which a unit leaks of a funnel that the rule requests units of; 0 if none does.
	intervalNs(r Rule) uint64

	// decide decides a request on a state that is of the kind, or has expired.
	decide(r Rule, s State, nowNs, quantity int64) (after State, result funnel.Result, changed bool, err error)
	makesKey(r Rule, quantity int64) bool
	// full returns a state of which a rule's units are all available.
	full(r Rule, nowNs int64) State
	// left returns how many units a payload leaves, if when the key expires does not tell, up to a constant.
	left(payload []byte) int64

	// valid reports whether a state may have been made by requests or operations.
	valid(s State) bool
	// shift adds byNs to the times in a payload, in place.
	shift(payload []byte, byNs int64)
	// eachTAT calls f with the TATs of a live state, and where they are in its payload.
	eachTAT(s State, nowNs int64, f func(at int, periodNs, tatNs int64))
	// stamp adds the stamps of a state's payload, and follows the key's expiry.
	stamp(to *stamping)
}

// defaults are what a kind is and does that has no other of its own.
type defaults struct{}

func (defaults) build(Spec) (Packed, error)   { return Packed{}, ErrWrongType }
func (defaults) numbers(Rule) Numbers         { return Numbers{} }
func (defaults) share(r Rule, _ float64) Rule { return r }
func (defaults) makesKey(Rule, int64) bool    { return false }
func (defaults) full(Rule, int64) State       { return State{} }
func (defaults) left([]byte) int64            { return 0 }
func (defaults) valid(State) bool             { return false }
func (defaults) shift([]byte, int64)          {}
func (defaults) stamp(*stamping)              {}

func (defaults) intervalNs(Rule) uint64                        { return 0 }
func (defaults) eachTAT(State, int64, func(int, int64, int64)) {}
func (defaults) decide(_ Rule, s State, _, _ int64) (State, funnel.Result, bool, error) {
	return s, funnel.Result{}, false, ErrWrongType
}

// noKind is what no constant stands for.
type noKind struct{ defaults }

func (noKind) row() Row { return Row{Name: "unknown", Type: "unknown"} }
