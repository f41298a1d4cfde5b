// Package catalog is the commands as data: arity, flags, keys, categories and documentation, from which COMMAND, HELP,
// access control and every error about arity are read. What executes a command is bound to it by its name, on a floor
// above. A Catalog never changes and is safe for concurrent use.
package catalog

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
)

// RedisVersion is the Redis whose replies the commands give; clients choose what they send by it.
const RedisVersion = "7.0.15"

// The module whose command CL.THROTTLE is; clients look for it in MODULE LIST.
const (
	ModuleName    = "redis-cell"
	ModuleVersion = 1
)

// Command is all that is known of a command or subcommand.
type Command struct {
	Name       string // lower case
	Parent     string // of a subcommand: its command's name
	Arity      int    // arguments with the name; negative: at least so many
	MaxArgs    int    // arguments with the name, at most; 0 for resp.LongArgs
	Flags      Flag
	Categories []string // beyond those that the flags imply
	Keys       KeySpec
	Group      string
	Since      string
	Complexity string
	Summary    string
	Args       []Arg
	Subs       []*Command
	// Batches says that calls are collected and decided together.
	Batches bool
	// QuantityAt is the argument with the units that a call requests, 0 for none. A call that returns units instead, by a
	// negative number, needs the right to DEL the keys as well: either lets their users through again.
	QuantityAt int
	// Long says that a call may take milliseconds, so that others are served before the next one of the client.
	Long bool
	// Cost is what a call takes while others wait for it.
	Cost Cost
	// Refusal is why there is no such command here; where it is not empty, the command is in no list.
	Refusal string
	// Differs says how it differs from Redis's command of the name.
	Differs string

	ID int // its place among Catalog.Commands

	del *Command // of a command with a quantity: DEL
}

// Cost is what a call takes in a transaction, at most, beyond what any call takes for itself, its arguments and its keys. It
// is in steps of about a nanosecond, of which a transaction that others wait for has a bounded number.
type Cost struct {
	Call   int // of each call
	Client int // for each client that is connected
	Slot   int // for each slot of the store, by a command that goes through all of them
	KiB    int // for each KiB of the names in the store, by one that gives back what they take
	// Pattern is where the pattern stands with which such a command compares all names; 0 for none.
	Pattern int
	// Options says that its options are those of SCAN: COUNT says through how many it goes, and MATCH is the pattern.
	Options bool
}

// Flag is a set of properties of a command.
type Flag uint32

// Redis's flags, as COMMAND INFO shows them:
const (
	FlagWrite Flag = 1 << iota
	FlagReadonly
	FlagDenyOOM // refused where it would make a key that has no room
	FlagModule
	FlagAdmin
	FlagNoScript // not in scripts
	FlagBlocking // its client may have to wait
	FlagLoading
	FlagStale
	FlagFast
	FlagNoAuth // may run before AUTH
	FlagNoMandatoryKeys
	FlagNoMulti // not in transactions
	FlagMovableKeys

	// Those behind it are this server's own, and not shown.

	FlagNotQueued   // executed at once also behind MULTI
	FlagWhole       // about all keys: the handler is given the whole store
	FlagScript      // runs a script
	FlagRefill      // empties funnels, so that those whom they limit may go on, or is about their states as such
	FlagNotWithKeys // does I/O, logs, frees memory, or changes users or settings: EXEC does not execute it while it holds keys
)

const shownFlags = FlagNotQueued - 1

// flagNames are in the order of their bits, which is that in which Redis lists them.
func flagNames() []string {
	return []string{"write", "readonly", "denyoom", "module", "admin", "noscript", "blocking", "loading", "stale", "fast", "no_auth",
		"no_mandatory_keys", "no_multi", "movablekeys"}
}

// Names returns the flags that are shown, by their names.
func (f Flag) Names() (names []string) {
	for i, name := range flagNames() {
		if f&shownFlags&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Arg describes an argument for COMMAND DOCS, from which clients make their hints.
type Arg struct {
	Name     string
	Type     string // string, integer, key, double, pattern, pure-token, oneof or block
	Token    string
	Optional bool
	Multiple bool
	Args     []Arg
}

// FullName is the name by which statistics and rules know the command: "config|get" for a subcommand.
func (c *Command) FullName() string {
	if c.Parent == "" {
		return c.Name
	}
	return c.Parent + "|" + c.Name
}

// AcceptsArity reports whether a call may have so many arguments, with its name.
func (c *Command) AcceptsArity(n int) bool {
	return n == c.Arity || c.Arity < 0 && n >= -c.Arity
}

// Most is how many arguments a call may have, with its name. Those that may have more than resp.LongArgs are
// executed in the background when they do.
func (c *Command) Most() int {
	if c.MaxArgs == 0 {
		return resp.LongArgs
	}
	return c.MaxArgs
}

// anyNumber is the MaxArgs of a command that is bounded only by --max-args.
const anyNumber = math.MaxInt

// Sub returns the subcommand of that name in any case, or nil.
func (c *Command) Sub(name []byte) *Command {
	for _, sub := range c.Subs {
		if glob.IsFolded(name, sub.Name) {
			return sub
		}
	}
	return nil
}

// AllCategories returns the flags' categories, as Redis derives them, and the command's own, in Redis's order,
// and behind them the category that only this server has, @refill.
func (c *Command) AllCategories() []string {
	var all []string
	add := func(on bool, names ...string) {
		if on {
			all = append(all, names...)
		}
	}
	add(c.Flags&FlagWrite != 0, "write")
	add(c.Flags&FlagReadonly != 0 && c.Flags&FlagScript == 0, "read") // or who may only read could run scripts
	add(c.Flags&FlagAdmin != 0, "admin", "dangerous")
	add(c.Flags&FlagFast != 0, "fast")
	add(c.Flags&FlagFast == 0, "slow")
	add(c.Flags&FlagBlocking != 0, "blocking")
	for _, own := range c.Categories {
		add(!slices.Contains(all, own), own)
	}
	order := acl.RedisCategories()
	slices.SortFunc(all, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	add(c.Flags&FlagRefill != 0, "refill")
	return all
}

// ShownSubs are the subcommands that lists have.
func (c *Command) ShownSubs() []*Command {
	isRefused := func(sub *Command) bool { return sub.Refusal != "" }
	if slices.ContainsFunc(c.Subs, isRefused) {
		return slices.DeleteFunc(slices.Clone(c.Subs), isRefused)
	}
	return c.Subs
}

// Catalog finds commands by their names. It is made once and given to all who must agree on a command's ID.
type Catalog struct {
	commands []*Command // with their subcommands, by ID: those that rules may name, and behind them those that are refused
	ruled    int        // how many of them rules may name
	shown    []*Command // sorted by name
	byName   map[string]*Command
}

const maxNameBytes = 32 // longer than any command's name

// New returns the catalog of this server's commands.
func New() *Catalog { return Of(Rows()) }

// Of returns a catalog of some commands, which it completes and keeps.
func Of(rows []*Command) *Catalog {
	t := &Catalog{byName: make(map[string]*Command, len(rows))}
	byName := func(a, b *Command) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(rows, byName)
	for _, c := range rows {
		t.byName[c.Name] = c
		slices.SortFunc(c.Subs, byName)
		for _, sub := range c.Subs {
			sub.Parent, sub.Group = c.Name, c.Group
		}
		if c.Refusal == "" {
			t.shown = append(t.shown, c)
		}
	}
	number := func(c *Command) {
		c.ID = len(t.commands)
		t.commands = append(t.commands, c)
	}
	t.Each(number)
	for _, c := range t.commands {
		if c.QuantityAt > 0 {
			c.del = t.byName["del"]
		}
	}
	t.ruled = len(t.commands)
	for _, c := range rows {
		if c.Refusal != "" {
			number(c)
		}
	}
	return t
}

// Without returns the catalog with some commands or subcommands refused. They keep their IDs.
func (t *Catalog) Without(refusal string, names ...string) *Catalog {
	less := &Catalog{commands: slices.Clone(t.commands), ruled: t.ruled, byName: make(map[string]*Command, len(t.byName))}
	for name, c := range t.byName {
		if slices.Contains(names, name) {
			c = less.refused(c, refusal)
		} else if slices.ContainsFunc(c.Subs, func(sub *Command) bool { return slices.Contains(names, sub.FullName()) }) {
			c = less.withoutSubs(c, refusal, names)
		}
		less.byName[name] = c
	}
	for _, c := range t.shown {
		if !slices.Contains(names, c.Name) {
			less.shown = append(less.shown, less.byName[c.Name])
		}
	}
	return less
}

// withoutSubs replaces a command by one of which some subcommands are refused.
func (t *Catalog) withoutSubs(c *Command, refusal string, names []string) *Command {
	less := *c
	less.Subs = slices.Clone(c.Subs)
	for i, sub := range less.Subs {
		if slices.Contains(names, sub.FullName()) {
			less.Subs[i] = t.refused(sub, refusal)
		}
	}
	t.commands[c.ID] = &less
	return &less
}

func (t *Catalog) refused(c *Command, refusal string) *Command {
	refused := *c
	refused.Refusal, refused.Subs = refusal, nil
	for _, sub := range c.Subs {
		refused.Subs = append(refused.Subs, t.refused(sub, refusal))
	}
	t.commands[c.ID] = &refused
	return &refused
}

// Commands are all commands and subcommands by their IDs.
func (t *Catalog) Commands() []*Command { return t.commands }

// Shown are the commands that lists have, without their subcommands, by name.
func (t *Catalog) Shown() []*Command { return t.shown }

// Each visits the commands that lists have, and their subcommands, in the order of their names.
func (t *Catalog) Each(visit func(*Command)) {
	for _, c := range t.shown {
		visit(c)
		for _, sub := range c.ShownSubs() {
			visit(sub)
		}
	}
}

// Batched are the full names of the commands that are decided in batches.
func (t *Catalog) Batched() (names []string) {
	for _, c := range t.commands {
		if c.Batches {
			names = append(names, c.FullName())
		}
	}
	return names
}

// IsRuled reports whether access control knows a command, be it refused here or not.
func (t *Catalog) IsRuled(c *Command) bool { return c.ID < t.ruled }

// ForRules returns what access control must know of the commands, by their IDs.
func (t *Catalog) ForRules() []acl.Command {
	all := make([]acl.Command, t.ruled)
	for id, c := range t.commands[:t.ruled] {
		all[id] = acl.Command{Name: c.FullName(), Parent: c.Parent, Categories: c.AllCategories(), NoAuth: c.Flags&FlagNoAuth != 0}
	}
	return all
}

// Lookup finds a command by its name in any case, without allocation.
func (t *Catalog) Lookup(name []byte) *Command {
	if len(name) > maxNameBytes {
		return nil
	}
	var folded [maxNameBytes]byte
	for i, c := range name {
		folded[i] = glob.Lower(c)
	}
	return t.byName[string(folded[:len(name)])]
}

// Called finds the command or subcommand that a call is of, without allocation.
func (t *Catalog) Called(args [][]byte) *Command {
	c := t.Lookup(args[0])
	if c == nil || c.Subs == nil || len(args) == 1 {
		return c
	}
	return c.Sub(args[1])
}

// LookupShown is LookupFull for what is in lists.
func (t *Catalog) LookupShown(name []byte) *Command {
	if c := t.LookupFull(name); c != nil && c.Refusal == "" {
		return c
	}
	return nil
}

// LookupFull finds a command or, by "command|subcommand", a subcommand.
func (t *Catalog) LookupFull(name []byte) *Command {
	command, sub, isSub := bytes.Cut(name, []byte("|"))
	c := t.Lookup(command)
	if c == nil || !isSub {
		return c
	}
	return c.Sub(sub)
}
