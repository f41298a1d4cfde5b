package limiter

import (
	"slices"
	"strings"

	"cellserver/internal/funnel"
)

// MaxArguments bounds the numbers of a kind's limit.
const MaxArguments = 3

// Numbers are a limit's numbers in the order of its kind's arguments.
type Numbers [MaxArguments]int64

// Row describes a kind to clients, operators and tools.
type Row struct {
	Name     string // in files and for operators
	Type     string // of TYPE
	Encoding string // of OBJECT ENCODING

	Command   string // creates keys of the kind and stands for its decisions; lower case
	Sub       string // if the command has subcommands
	Option    string // selects this kind of the command
	arguments [MaxArguments]string
	// CountsDenied reports whether the command has COUNTDENIED.
	CountsDenied bool
	Debits       bool        // the command has DEBIT
	Unit         funnel.Unit // of the command's times
	Calendar     bool        // the command takes a window of the calendar after the numbers

	Short string // name in links and flags, if arguments and time determine decisions; else empty
	// Endless reports whether keys expire only by EXPIRE.
	Endless bool
}

// Arguments returns the names of a limit's numbers after the key; none where requests give no limit.
func (r *Row) Arguments() []string {
	if n := slices.Index(r.arguments[:], ""); n >= 0 {
		return r.arguments[:n]
	}
	return r.arguments[:]
}

// FullCommand returns the catalog's name with the subcommand.
func (r *Row) FullCommand() string {
	if r.Sub == "" {
		return r.Command
	}
	return r.Command + "|" + r.Sub
}

// Call returns the command as callers write it.
func (r *Row) Call() string {
	words := slices.DeleteFunc([]string{r.Command, r.Sub, r.Option}, func(word string) bool { return word == "" })
	return strings.ToUpper(strings.Join(words, " "))
}

func (k Kind) Row() Row { return k.of().row() }

func (k Kind) Type() string { return k.Row().Type }

// String returns the kind's name, unique also among TYPE's strings.
func (k Kind) String() string { return k.Row().Name }

func KindOf(name string) (k Kind, ok bool) {
	for k := range Kinds {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// kind is a kind's behavior. Arguments are values: pointers in indirect calls would escape to the heap.
type kind interface {
	row() Row

	// build packs a limit's numbers into a rule, or returns its arithmetic's error.
	build(s Spec) (Packed, error)
	// numbers reverses build, with a funnel's capacity for max_burst.
	numbers(r Rule) Numbers
	// share reduces a rule to a share, as funnel.Limit.Share does.
	share(r Rule, share float64) Rule

	makesKey(r Rule, quantity int64) bool
	// left returns a payload's remaining units up to a constant, if the expiry does not tell.
	left(payload []byte) int64

	// valid reports whether requests or operations can make the state.
	valid(s State) bool
	shift(payload []byte, byNs int64)
	// clocked is EachClocked of a live state.
	clocked(s State, visit Visit)
	// endNs is EndNs of a live state.
	endNs(s State, nowNs int64) int64
}

// defaults is the behavior common to kinds.
type defaults struct{}

func (defaults) build(Spec) (Packed, error)   { return Packed{}, ErrWrongType }
func (defaults) numbers(Rule) Numbers         { return Numbers{} }
func (defaults) share(r Rule, _ float64) Rule { return r }
func (defaults) makesKey(Rule, int64) bool    { return false }
func (defaults) left([]byte) int64            { return 0 }
func (defaults) valid(State) bool             { return false }
func (defaults) shift([]byte, int64)          {}
func (defaults) endNs(State, int64) int64     { return NeverNs }
func (defaults) clocked(_ State, visit Visit) { visit(Part{}, ExpiresAt, Latest) }

// counted is common to the kinds with a number of units in a rule's first word.
type counted struct{ defaults }

func (counted) share(r Rule, share float64) Rule {
	if units := r.Packed[0]; units > 0 && share < 1 {
		r.Packed[0] = max(1, int64(float64(units)*share))
	}
	return r
}

// noKind stands for unknown numbers.
type noKind struct{ defaults }

func (noKind) row() Row { return Row{Name: "unknown", Type: "unknown"} }
