package command

import (
	"bytes"
	"slices"
	"strings"
)

// row is a command: all that is known of it, and what runs it. COMMAND, HELP and every error about arity are
// read off it.
type row struct {
	name       string // lower case
	parent     string // of a subcommand: its command's name
	arity      int    // arguments with the name; negative: at least so many
	flags      flag
	categories []string // beyond those that the flags imply
	keys       keySpec
	group      string
	since      string
	complexity string
	summary    string
	args       []arg
	subs       []*row
	// batches says that run puts calls aside for Session.flush, so the batch before it need not be flushed.
	batches bool
	// long says that it may take milliseconds, so Feed returns after it, for the driver may have to end.
	long bool
	run  func(s *Session, args [][]byte) error
}

type flag uint16

const (
	flagWrite flag = 1 << iota
	flagReadonly
	flagAdmin
	flagLoading
	flagStale
	flagFast
	flagNoAuth // may run before AUTH
	flagModule
)

// flagNames are in the order of their bits.
func flagNames() []string {
	return []string{"write", "readonly", "admin", "loading", "stale", "fast", "no_auth", "module"}
}

// keySpec says which arguments are keys: first to last by step, counted from the name at 0; last may be
// negative, -1 for the last argument. The zero keySpec is a command without keys.
type keySpec struct {
	first, last, step int
	flags             []string
}

// arg describes an argument for COMMAND DOCS, from which clients make their hints.
type arg struct {
	name     string
	kind     string // string, integer, key, pattern, pure-token, oneof or block
	token    string
	optional bool
	multiple bool
	args     []arg
}

func (r *row) fullName() string {
	if r.parent == "" {
		return r.name
	}
	return r.parent + "|" + r.name
}

func (r *row) acceptsArity(n int) bool {
	return n == r.arity || r.arity < 0 && n >= -r.arity
}

// aclCategories returns the flags' categories, as Redis derives them, and the row's own.
func (r *row) aclCategories() []string {
	var c []string
	add := func(on bool, names ...string) {
		if on {
			c = append(c, names...)
		}
	}
	add(r.flags&flagWrite != 0, "write")
	add(r.flags&flagReadonly != 0, "read")
	add(r.flags&flagAdmin != 0, "admin", "dangerous")
	add(r.flags&flagFast != 0, "fast")
	add(r.flags&flagFast == 0, "slow")
	for _, own := range r.categories {
		add(!slices.Contains(c, own), own)
	}
	return c
}

// eachKey calls visit with the keys among args.
func (k keySpec) eachKey(args [][]byte, visit func(key []byte)) {
	if k.first == 0 {
		return
	}
	last := k.last
	if last < 0 {
		last += len(args)
	}
	for i := k.first; i <= last && i < len(args); i += k.step {
		visit(args[i])
	}
}

// table finds rows by name.
type table struct {
	rows   []*row // sorted by name
	byName map[string]*row
}

const maxNameBytes = 32 // longer than any command's name

func newTable(rows []*row) table {
	t := table{rows: rows, byName: make(map[string]*row, len(rows))}
	slices.SortFunc(t.rows, func(a, b *row) int { return strings.Compare(a.name, b.name) })
	for _, r := range rows {
		t.byName[r.name] = r
		for _, sub := range r.subs {
			sub.parent, sub.group = r.name, r.group
		}
	}
	return t
}

// lookup finds a command by its name in any case, without allocation.
func (t *table) lookup(name []byte) *row {
	if len(name) > maxNameBytes {
		return nil
	}
	var folded [maxNameBytes]byte
	for i, c := range name {
		folded[i] = lowerByte(c)
	}
	return t.byName[string(folded[:len(name)])]
}

// lookupFull finds a command or, by "command|subcommand", a subcommand.
func (t *table) lookupFull(name []byte) *row {
	command, sub, isSub := bytes.Cut(name, []byte("|"))
	r := t.lookup(command)
	if r == nil || !isSub {
		return r
	}
	return r.sub(sub)
}

func (r *row) sub(name []byte) *row {
	wanted := lower(name)
	for _, sub := range r.subs {
		if sub.name == wanted {
			return sub
		}
	}
	return nil
}

// lower folds the case of ASCII, as Redis does; strings.ToLower would find letters in other scripts.
func lower(b []byte) string {
	folded := make([]byte, len(b))
	for i, c := range b {
		folded[i] = lowerByte(c)
	}
	return string(folded)
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
