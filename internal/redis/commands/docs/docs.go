// Package docs has the commands that describe commands, by the catalog: COMMAND, HELP and MODULE LIST. Its
// handlers are safe for concurrent use.
package docs

import (
	"slices"
	"strings"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

type handlers struct{ *catalog.Catalog }

// Handlers returns the handlers by their commands' full names.
func Handlers(c *catalog.Catalog) map[string]execute.Handler {
	k := handlers{c}
	all := map[string]execute.Handler{
		"command":                 execute.Plain(k.commandAll),
		"command|count":           execute.Plain(k.commandCount),
		"command|info":            execute.Plain(k.commandInfo),
		"command|docs":            execute.Plain(k.commandDocs),
		"command|list":            execute.Plain(k.commandList),
		"command|getkeys":         execute.Plain(k.commandGetKeys),
		"command|getkeysandflags": execute.Plain(k.commandGetKeysAndFlags),
		"module|list":             execute.Plain(moduleList),
	}
	c.Each(func(c *catalog.Command) {
		if c.Name == "help" {
			all[c.FullName()] = execute.Plain(k.help)
		}
	})
	return all
}

func (k handlers) commandAll(c execute.Call, _ [][]byte) error {
	c.Reply().Array(len(k.Shown()))
	for _, r := range k.Shown() {
		replyCommand(c.Reply(), r)
	}
	return nil
}

func (k handlers) commandCount(c execute.Call, _ [][]byte) error {
	c.Reply().Int(int64(len(k.Shown())))
	return nil
}

func (k handlers) commandInfo(c execute.Call, args [][]byte) error {
	if len(args) == 2 {
		return k.commandAll(c, args)
	}
	if err := argument.CheckNames(args[2:]); err != nil {
		return err
	}
	c.Reply().Array(len(args) - 2)
	for _, name := range args[2:] {
		if r := k.LookupShown(name); r != nil {
			replyCommand(c.Reply(), r)
		} else {
			c.Reply().Null()
		}
	}
	return nil
}

// replyCommand writes the ten fields of COMMAND INFO.
func replyCommand(w *resp.Writer, r *catalog.Command) {
	w.Array(10)
	w.BulkString(r.FullName())
	w.Int(int64(r.Arity))
	w.StatusSet(r.Flags.Names())
	w.Int(int64(r.Keys.First))
	w.Int(int64(r.Keys.Last))
	w.Int(int64(r.Keys.Step))
	categories := r.AllCategories()
	for i := range categories {
		categories[i] = "@" + categories[i]
	}
	w.StatusSet(categories)
	w.Set(0) // tips
	replyKeySpecs(w, r.Keys)
	if r.Subs == nil {
		w.Set(0)
		return
	}
	subs := r.ShownSubs()
	w.Array(len(subs))
	for _, sub := range subs {
		replyCommand(w, sub)
	}
}

func replyKeySpecs(w *resp.Writer, spec catalog.KeySpec) {
	if spec.None() {
		w.Set(0)
		return
	}
	if second := spec; spec.SecondFlags != nil {
		w.Set(2)
		spec.Last, second.First, second.Flags = spec.First, spec.Last, spec.SecondFlags
		replyKeySpec(w, spec)
		replyKeySpec(w, second)
		return
	}
	w.Set(1)
	replyKeySpec(w, spec)
}

func replyKeySpec(w *resp.Writer, spec catalog.KeySpec) {
	w.Map(3)
	w.BulkString("flags")
	if spec.Joined > 0 || spec.Pairs { // no argument is a key
		w.StatusSet(append(spec.Flags[:len(spec.Flags):len(spec.Flags)], "incomplete"))
		replySpecPart(w, "begin_search", "unknown")
		replySpecPart(w, "find_keys", "unknown")
		return
	}
	w.StatusSet(spec.Flags)
	begin, find := max(spec.First, spec.Counted), "range"
	numbers := []specNumber{{"lastkey", spec.Last}, {"keystep", spec.Step}, {"limit", 0}}
	if spec.Last > 0 {
		numbers[0].n = spec.Last - spec.First // specs count from the first key
	}
	if spec.Counted > 0 {
		find, numbers = "keynum", []specNumber{{"keynumidx", 0}, {"firstkey", 1}, {"keystep", 1 + spec.With}}
	}
	replySpecPart(w, "begin_search", "index", specNumber{"index", begin})
	replySpecPart(w, "find_keys", find, numbers...)
}

type specNumber struct {
	name string
	n    int
}

func replySpecPart(w *resp.Writer, part, kind string, numbers ...specNumber) {
	w.BulkString(part)
	w.Map(2)
	w.Pair("type", kind)
	w.BulkString("spec")
	w.Map(len(numbers))
	for _, number := range numbers {
		w.BulkString(number.name)
		w.Int(int64(number.n))
	}
}

func (k handlers) commandDocs(c execute.Call, args [][]byte) error {
	found := k.Shown()
	if err := argument.CheckNames(args[2:]); err != nil {
		return err
	}
	if len(args) > 2 {
		found = nil
		for _, name := range args[2:] {
			if r := k.LookupShown(name); r != nil {
				found = append(found, r)
			}
		}
	}
	replyDocs(c.Reply(), found)
	return nil
}

func replyDocs(w *resp.Writer, rows []*catalog.Command) {
	w.Map(len(rows))
	for _, r := range rows {
		w.BulkString(r.FullName())
		replyDoc(w, r)
	}
}

func replyDoc(w *resp.Writer, r *catalog.Command) {
	isModule := r.Flags&catalog.FlagModule != 0
	fields := 4
	for _, more := range []bool{isModule, r.Args != nil, r.Subs != nil} {
		if more {
			fields++
		}
	}
	w.Map(fields)
	w.Pair("summary", r.Summary)
	w.Pair("since", r.Since)
	w.Pair("group", r.Group)
	w.Pair("complexity", r.Complexity)
	if isModule {
		w.Pair("module", catalog.ModuleName)
	}
	if r.Args != nil {
		w.BulkString("arguments")
		replyArgs(w, r.Args)
	}
	if r.Subs != nil {
		w.BulkString("subcommands")
		replyDocs(w, r.ShownSubs())
	}
}

func replyArgs(w *resp.Writer, args []catalog.Arg) {
	w.Array(len(args))
	for _, a := range args {
		flags := argFlags(a)
		fields := 2
		for _, more := range []bool{a.Type == "key", a.Token != "", flags != nil, a.Args != nil} {
			if more {
				fields++
			}
		}
		w.Map(fields)
		w.Pair("name", a.Name)
		w.Pair("type", a.Type)
		if a.Type == "key" {
			w.BulkString("key_spec_index")
			w.Int(0)
		}
		if a.Token != "" {
			w.Pair("token", a.Token)
		}
		if flags != nil {
			w.BulkString("flags")
			w.StatusSet(flags)
		}
		if a.Args != nil {
			w.BulkString("arguments")
			replyArgs(w, a.Args)
		}
	}
}

func argFlags(a catalog.Arg) (names []string) {
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	return names
}

// commandList is COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern].
func (k handlers) commandList(c execute.Call, args [][]byte) error {
	accept := func(*catalog.Command) bool { return true }
	if len(args) > 2 {
		if len(args) != 5 || glob.Fold(args[2]) != "filterby" {
			return reply.ErrSyntax
		}
		wanted := args[4]
		switch glob.Fold(args[3]) {
		case "module":
			accept = func(r *catalog.Command) bool {
				return r.Flags&catalog.FlagModule != 0 && string(wanted) == catalog.ModuleName
			}
		case "aclcat":
			accept = func(r *catalog.Command) bool { return slices.Contains(r.AllCategories(), glob.Fold(wanted)) }
		case "pattern":
			matches := argument.NameMatcher(wanted)
			accept = func(r *catalog.Command) bool { return matches(r.FullName()) }
		default:
			return reply.ErrSyntax
		}
	}
	var names []string
	k.Each(func(r *catalog.Command) {
		if accept(r) {
			names = append(names, r.FullName())
		}
	})
	c.Reply().Strings(names)
	return nil
}

func (k handlers) help(c execute.Call, args [][]byte) error {
	command := k.Lookup(args[0])
	ReplyHelp(c.Reply(), command.Name, command.ShownSubs())
	return nil
}

// ReplyHelp replies with the usage of subcommands.
func ReplyHelp(w *resp.Writer, name string, subs []*catalog.Command) {
	w.Array(1 + 2*len(subs))
	w.Status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range subs {
		w.Status(strings.TrimPrefix(sub.Usage(), strings.ToUpper(sub.Parent)+" "))
		w.Status("    " + sub.Summary + ".")
	}
}

// ReplyModules replies as MODULE LIST: the module of CL.THROTTLE.
func ReplyModules(w *resp.Writer) {
	w.Array(1)
	w.Map(4)
	w.Pair("name", catalog.ModuleName)
	w.BulkString("ver")
	w.Int(catalog.ModuleVersion)
	w.Pair("path", "")
	w.BulkString("args")
	w.Array(0)
}

func moduleList(c execute.Call, _ [][]byte) error {
	ReplyModules(c.Reply())
	return nil
}

func (k handlers) commandGetKeys(c execute.Call, args [][]byte) error {
	_, keys, err := k.keysOf(args[2:])
	if err != nil {
		return err
	}
	c.Reply().Array(len(keys))
	for _, key := range keys {
		c.Reply().Bulk(key)
	}
	return nil
}

func (k handlers) commandGetKeysAndFlags(c execute.Call, args [][]byte) error {
	r, keys, err := k.keysOf(args[2:])
	if err != nil {
		return err
	}
	flags := r.Keys.FlagsOf(args[2:])
	c.Reply().Array(len(keys))
	for i, key := range keys {
		if i == 1 && r.Keys.SecondFlags != nil {
			flags = r.Keys.SecondFlags
		}
		c.Reply().Array(2)
		c.Reply().Bulk(key)
		c.Reply().StatusSet(flags)
	}
	return nil
}

// keysOf returns the keys of a call. By its callers' arity args has at least two elements.
func (k handlers) keysOf(args [][]byte) (*catalog.Command, [][]byte, error) {
	r := k.Called(args)
	switch {
	case r == nil || r.Refusal != "":
		return nil, nil, reply.Error("ERR Invalid command specified")
	case r.Keys.None():
		return nil, nil, reply.Error("ERR The command has no key arguments")
	case !r.AcceptsArity(len(args)) || len(args) > r.Most():
		return nil, nil, reply.Error("ERR Invalid number of arguments specified for command")
	}
	var keys [][]byte
	r.Keys.Each(args, func(key []byte) { keys = append(keys, key) })
	return r, keys, nil
}
