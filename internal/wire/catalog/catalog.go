// Package catalog describes the commands: arity, flags, keys, categories and documentation, for COMMAND,
// HELP, access control and arity errors. Handlers are bound by name elsewhere. A Catalog is immutable and
// safe for concurrent use.
package catalog

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
)

// RedisVersion is the newest version of Redis whose commands on strings are here, or refused with a reason.
// By it clients choose what to send. INFO, HELLO and scripts tell it.
const RedisVersion = "8.8.0"

// The module of CL.THROTTLE, which clients look for in MODULE LIST.
const (
	ModuleName    = "redis-cell"
	ModuleVersion = 1
)

// Command describes a command or subcommand.
type Command struct {
	Name       string // lower case
	Parent     string // of a subcommand: its command's name
	Arity      int    // arguments with the name; negative for a minimum
	MaxArgs    int    // most arguments with the name; 0 for resp.LongArgs
	Flags      Flag
	Categories []string // beyond those that the flags imply
	Keys       KeySpec
	Group      string
	Since      string
	Complexity string
	Summary    string
	Args       []Arg
	Subs       []*Command
	// Batches is set if calls are collected and decided together.
	Batches bool
	// QuantityAt is the index of the argument with the units requested, 0 for none. A negative quantity
	// returns units and needs the right to CL.RESET the keys, because both let limited callers through.
	QuantityAt int
	// GivesUnits is set if every call returns units, and so needs that right.
	GivesUnits bool
	// Long is set if a call may take milliseconds, so that other clients are served before the client's next
	// command.
	Long bool
	// Cost is the time of a call for which others wait.
	Cost Cost
	// Refusal is the reason why the command is not available and not listed; "" if it is.
	Refusal string
	// Differs describes differences from Redis's command.
	Differs string

	ID int // index in Catalog.Commands

	reset *Command // of a command that can return units: CL.RESET
}

// Cost bounds the time of a call in a transaction beyond that of any call, its arguments and its keys, in
// steps of about a nanosecond. A transaction for which others wait has a bounded number of steps.
type Cost struct {
	Call int // of each call
	Key  int // for each of its keys
	// Word is an option, in lower case, of calls that take OfWord more.
	Word   string
	OfWord int
	Client int // for each connected client
	Slot   int // for each slot of the store, of a command that walks them
	KiB    int // for each KiB of names that the command frees
	// Pattern is the index of the pattern compared with all names; 0 for none.
	Pattern int
	// Options is set for SCAN's options: COUNT bounds the slots, and MATCH is the pattern.
	Options bool
}

// CostOf returns the time of a call by its words and keys.
func (c *Command) CostOf(args [][]byte) (steps int) {
	cost := &c.Cost
	if steps = cost.Call; cost.Word != "" && slices.ContainsFunc(args, func(arg []byte) bool { return glob.IsFolded(arg, cost.Word) }) {
		steps += cost.OfWord
	}
	if cost.Key > 0 {
		c.Keys.Each(args, func([]byte) { steps += cost.Key })
	}
	return steps
}

// Flag is a set of properties of a command.
type Flag uint32

// Redis's flags, as COMMAND INFO shows them:
const (
	FlagWrite Flag = 1 << iota
	FlagReadonly
	FlagDenyOOM // refused if it needs a new key and memory is full
	FlagModule
	FlagAdmin
	FlagPubSub
	FlagNoScript // not in scripts
	FlagBlocking // may block its client
	FlagLoading
	FlagStale
	FlagFast
	FlagNoAuth // may run before AUTH
	FlagNoMandatoryKeys
	FlagNoMulti // not in transactions
	FlagMovableKeys

	// The flags below are internal.

	FlagNotQueued   // executed at once after MULTI
	FlagWhole       // about all keys: the handler gets the whole store
	FlagScript      // runs a script
	FlagRefill      // lets limited callers through by emptying funnels, or reads or writes states
	FlagNotWithKeys // does I/O, logs, frees memory, or changes users or settings: EXEC refuses it while it holds keys
)

const shownFlags = FlagNotQueued - 1

// flagNames returns the flags' names by bit, in Redis's order.
func flagNames() []string {
	return []string{"write", "readonly", "denyoom", "module", "admin", "pubsub", "noscript", "blocking", "loading", "stale", "fast", "no_auth",
		"no_mandatory_keys", "no_multi", "movablekeys"}
}

// Names returns the names of Redis's flags.
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

// FullName returns the name in statistics and rules: "config|get" for a subcommand.
func (c *Command) FullName() string {
	if c.Parent == "" {
		return c.Name
	}
	return c.Parent + "|" + c.Name
}

// AcceptsArity reports whether a call may have n arguments with its name.
func (c *Command) AcceptsArity(n int) bool {
	return n == c.Arity || c.Arity < 0 && n >= -c.Arity
}

// Most returns the most arguments with the name. Calls with more than resp.LongArgs are executed in the
// background.
func (c *Command) Most() int { return cmp.Or(c.MaxArgs, resp.LongArgs) }

// anyNumber is the MaxArgs of a command bounded only by --max-args.
const anyNumber = math.MaxInt

// Sub returns the subcommand of that name in any case, or nil.
func (c *Command) Sub(name []byte) *Command {
	if i := slices.IndexFunc(c.Subs, func(sub *Command) bool { return glob.IsFolded(name, sub.Name) }); i >= 0 {
		return c.Subs[i]
	}
	return nil
}

// AllCategories returns the categories that Redis derives from flags and the command's own, in Redis's order,
// then @refill, which only this server has.
func (c *Command) AllCategories() []string {
	var all []string
	add := func(on bool, names ...string) {
		if on {
			all = append(all, names...)
		}
	}
	add(c.Flags&FlagWrite != 0, "write")
	add(c.Flags&FlagReadonly != 0 && c.Flags&FlagScript == 0, "read") // else read-only users could run scripts
	add(c.Flags&FlagAdmin != 0, "admin", "dangerous")
	add(c.Flags&FlagPubSub != 0, "pubsub")
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

// ShownSubs returns the subcommands that are listed.
func (c *Command) ShownSubs() []*Command {
	isRefused := func(sub *Command) bool { return sub.Refusal != "" }
	if slices.ContainsFunc(c.Subs, isRefused) {
		return slices.DeleteFunc(slices.Clone(c.Subs), isRefused)
	}
	return c.Subs
}

// Catalog finds commands by name. Packages that exchange command IDs share one Catalog.
type Catalog struct {
	commands []*Command // with subcommands, by ID: first those that rules may name, then the refused ones
	ruled    int        // number of commands that rules may name
	shown    []*Command // sorted by name
	byName   map[string]*Command
	limiters []string // names of the commands of limiters
}

const maxNameBytes = 32 // longer than any command's name

// New returns the catalog of this server's commands.
func New() *Catalog { return Of(Rows()) }

// Of returns a catalog of rows, which it completes and keeps.
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
		if c.Refusal == "" && c.IsLimiters() {
			t.limiters = append(t.limiters, c.Name)
		}
	}
	number := func(c *Command) {
		c.ID = len(t.commands)
		t.commands = append(t.commands, c)
	}
	t.Each(number)
	for _, c := range t.commands {
		if c.QuantityAt > 0 || c.GivesUnits {
			c.reset = t.byName["cl.reset"]
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

// Without returns a copy that refuses some commands or subcommands. They keep their IDs.
func (t *Catalog) Without(refusal string, names ...string) *Catalog {
	less := &Catalog{commands: slices.Clone(t.commands), ruled: t.ruled, byName: make(map[string]*Command, len(t.byName))}
	isNamed := func(c *Command) bool { return slices.Contains(names, c.FullName()) }
	for name, c := range t.byName {
		if isNamed(c) || slices.ContainsFunc(c.Subs, isNamed) {
			c = less.refuse(c, refusal, isNamed)
		}
		less.byName[name] = c
	}
	for _, c := range t.shown {
		if slices.Contains(names, c.Name) {
			continue
		}
		less.shown = append(less.shown, less.byName[c.Name])
		if c.IsLimiters() {
			less.limiters = append(less.limiters, c.Name)
		}
	}
	return less
}

// refuse replaces a command by one that is refused if it is named, or else has refused subcommands.
func (t *Catalog) refuse(c *Command, refusal string, isNamed func(*Command) bool) *Command {
	less := *c
	less.Subs = nil
	if isNamed(c) {
		less.Refusal, isNamed = refusal, func(*Command) bool { return true }
	}
	for _, sub := range c.Subs {
		less.Subs = append(less.Subs, t.refuse(sub, refusal, isNamed))
	}
	t.commands[c.ID] = &less
	return &less
}

// Commands returns all commands and subcommands by ID.
func (t *Catalog) Commands() []*Command { return t.commands }

// Shown returns the listed commands, without subcommands, by name.
func (t *Catalog) Shown() []*Command { return t.shown }

// Each visits the listed commands and subcommands by name.
func (t *Catalog) Each(visit func(*Command)) {
	for _, c := range t.shown {
		visit(c)
		for _, sub := range c.ShownSubs() {
			visit(sub)
		}
	}
}

// Batched returns the full names of the limiters' commands decided in batches. They reply arrays of integers.
func (t *Catalog) Batched() (names []string) {
	for _, c := range t.commands {
		if c.Batches && c.Group != "string" {
			names = append(names, c.FullName())
		}
	}
	return names
}

// IsRuled reports whether rules may name a command.
func (t *Catalog) IsRuled(c *Command) bool { return c.ID < t.ruled }

// ForRules returns the commands for access control, by ID.
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

// Called finds the command or subcommand of a call, without allocation.
func (t *Catalog) Called(args [][]byte) *Command {
	c := t.Lookup(args[0])
	if c == nil || c.Subs == nil || len(args) == 1 {
		return c
	}
	return c.Sub(args[1])
}

// LookupShown is LookupFull for listed commands.
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
