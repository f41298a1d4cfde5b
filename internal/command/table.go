package command

import (
	"bytes"
	"slices"
	"strings"

	"cellserver/internal/acl"
	"cellserver/internal/glob"
	"cellserver/internal/resp"
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
	// refusal is why there is no such command here; where it is not empty, the row is in no list.
	refusal string
	// differs says how it differs from Redis's command of the name.
	differs string
	run     func(s *Session, args [][]byte) error

	id    int // among Commands
	stats *rowStats
}

type flag uint16

const (
	flagWrite flag = 1 << iota
	flagReadonly
	flagModule
	flagAdmin
	flagNoScript // not in scripts
	flagLoading
	flagStale
	flagFast
	flagNoAuth // may run before AUTH
	flagNoMandatoryKeys
	flagNoMulti // not in transactions
	flagMovableKeys

	// What follows is ours and not shown.

	flagNotQueued // executed at once also behind MULTI
	flagWhole     // about all keys
	flagScript    // runs a script
)

const shownFlags = flagNotQueued - 1

// flagNames are in the order of their bits, which is that in which Redis lists them.
func flagNames() []string {
	return []string{"write", "readonly", "module", "admin", "noscript", "loading", "stale", "fast", "no_auth",
		"no_mandatory_keys", "no_multi", "movablekeys"}
}

// keySpec says which arguments are keys: first to last by step, counted from the name at 0; last may be
// negative, -1 for the last argument. The zero keySpec is a command without keys.
type keySpec struct {
	first, last, step int
	flags             []string
	// counted is where the argument stands that says how many keys follow it, as in EVAL; then first is 0.
	counted int
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

// aclCategories returns the flags' categories, as Redis derives them, and the row's own, in Redis's order.
func (r *row) aclCategories() []string {
	var c []string
	add := func(on bool, names ...string) {
		if on {
			c = append(c, names...)
		}
	}
	add(r.flags&flagWrite != 0, "write")
	add(r.flags&flagReadonly != 0 && r.flags&flagScript == 0, "read") // or who may only read could run scripts
	add(r.flags&flagAdmin != 0, "admin", "dangerous")
	add(r.flags&flagFast != 0, "fast")
	add(r.flags&flagFast == 0, "slow")
	for _, own := range r.categories {
		add(!slices.Contains(c, own), own)
	}
	order := acl.RedisCategories()
	slices.SortFunc(c, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	return c
}

// eachKey calls visit with the keys among args.
func (k keySpec) eachKey(args [][]byte, visit func(key []byte)) {
	if k.counted > 0 {
		keys, _ := k.countedKeys(args)
		for _, key := range keys {
			visit(key)
		}
		return
	}
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

// countedKeys returns the keys behind their number, and what stands behind them.
func (k keySpec) countedKeys(args [][]byte) (keys, rest [][]byte) {
	if len(args) <= k.counted {
		return nil, nil
	}
	n, ok := resp.ParseInt(args[k.counted])
	rest = args[k.counted+1:]
	if !ok || n < 0 || n > int64(len(rest)) {
		return nil, rest
	}
	return rest[:n], rest[n:]
}

// access says which permissions the keys take: some commands take none but that the key is the user's at all.
func (k keySpec) access() (a acl.Access) {
	for _, f := range k.flags {
		switch f {
		case "access":
			a |= acl.Read
		case "update", "insert", "delete":
			a |= acl.Write
		}
	}
	return a
}

// table finds rows by name.
type table struct {
	rows   []*row // sorted by name, without those that are refused
	byName map[string]*row
	ids    int // above those of all rows
}

const maxNameBytes = 32 // longer than any command's name

func newTable(rows []*row) table {
	t := table{byName: make(map[string]*row, len(rows))}
	byName := func(a, b *row) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(rows, byName)
	for _, r := range rows {
		r.stats = &rowStats{}
		t.byName[r.name] = r
		slices.SortFunc(r.subs, byName)
		for _, sub := range r.subs {
			sub.parent, sub.group, sub.stats = r.name, r.group, &rowStats{}
		}
		if r.refusal == "" {
			t.rows = append(t.rows, r)
		}
	}
	t.each(func(r *row) {
		r.id = t.ids
		t.ids++
	})
	return t
}

// refuse takes commands out of all lists.
func (t *table) refuse(reason string, names ...string) {
	for _, name := range names {
		r := t.byName[name]
		r.refusal = reason
		for _, sub := range r.subs {
			sub.refusal = reason
		}
	}
	t.rows = slices.DeleteFunc(t.rows, func(r *row) bool { return r.refusal != "" })
}

// lookup finds a command by its name in any case, without allocation.
func (t *table) lookup(name []byte) *row {
	if len(name) > maxNameBytes {
		return nil
	}
	var folded [maxNameBytes]byte
	for i, c := range name {
		folded[i] = glob.Lower(c)
	}
	return t.byName[string(folded[:len(name)])]
}

// lookupShown is lookupFull for what is in lists.
func (t *table) lookupShown(name []byte) *row {
	if r := t.lookupFull(name); r != nil && r.refusal == "" {
		return r
	}
	return nil
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
		folded[i] = glob.Lower(c)
	}
	return string(folded)
}
