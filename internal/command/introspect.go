package command

import (
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/glob"
)

// moduleName is the module whose command CL.THROTTLE is; clients look for it in MODULE LIST.
const (
	moduleName    = "redis-cell"
	moduleVersion = 1
)

func commandAll(s *Session, _ [][]byte) error {
	s.w.Array(len(s.engine.table.rows))
	for _, r := range s.engine.table.rows {
		s.replyCommand(r)
	}
	return nil
}

func commandCount(s *Session, _ [][]byte) error {
	s.w.Int(int64(len(s.engine.table.rows)))
	return nil
}

func commandInfo(s *Session, args [][]byte) error {
	if len(args) == 2 {
		return commandAll(s, args)
	}
	if err := checkNames(args[2:]); err != nil {
		return err
	}
	s.w.Array(len(args) - 2)
	for _, name := range args[2:] {
		if r := s.engine.table.lookupShown(name); r != nil {
			s.replyCommand(r)
		} else {
			s.w.Null()
		}
	}
	return nil
}

// replyCommand writes the ten fields of COMMAND INFO.
func (s *Session) replyCommand(r *row) {
	s.w.Array(10)
	s.w.BulkString(r.fullName())
	s.w.Int(int64(r.arity))
	s.replyStatuses(r.flags.names())
	s.w.Int(int64(r.keys.first))
	s.w.Int(int64(r.keys.last))
	s.w.Int(int64(r.keys.step))
	categories := r.aclCategories()
	for i := range categories {
		categories[i] = "@" + categories[i]
	}
	s.replyStatuses(categories)
	s.w.Set(0) // tips
	s.replyKeySpecs(r.keys)
	if r.subs == nil {
		s.w.Set(0)
		return
	}
	s.w.Array(len(r.subs))
	for _, sub := range r.subs {
		s.replyCommand(sub)
	}
}

func (f flag) names() (names []string) {
	for i, name := range flagNames() {
		if f&shownFlags&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (s *Session) replyStatuses(names []string) {
	s.w.Set(len(names))
	for _, name := range names {
		s.w.Status(name)
	}
}

func (s *Session) replyKeySpecs(k keySpec) {
	if k.first == 0 && k.counted == 0 {
		s.w.Set(0)
		return
	}
	s.w.Set(1)
	s.w.Map(3)
	s.w.BulkString("flags")
	s.replyStatuses(k.flags)
	begin, find := max(k.first, k.counted), "range"
	numbers := []specNumber{{"lastkey", k.last}, {"keystep", k.step}, {"limit", 0}}
	if k.last > 0 {
		numbers[0].n = k.last - k.first // a spec counts from the first key
	}
	if k.counted > 0 {
		find, numbers = "keynum", []specNumber{{"keynumidx", 0}, {"firstkey", 1}, {"keystep", 1}}
	}
	s.replySpecPart("begin_search", "index", specNumber{"index", begin})
	s.replySpecPart("find_keys", find, numbers...)
}

type specNumber struct {
	name string
	n    int
}

func (s *Session) replySpecPart(part, kind string, numbers ...specNumber) {
	s.w.BulkString(part)
	s.w.Map(2)
	s.replyPair("type", kind)
	s.w.BulkString("spec")
	s.w.Map(len(numbers))
	for _, number := range numbers {
		s.w.BulkString(number.name)
		s.w.Int(int64(number.n))
	}
}

func commandDocs(s *Session, args [][]byte) error {
	found := s.engine.table.rows
	if err := checkNames(args[2:]); err != nil {
		return err
	}
	if len(args) > 2 {
		found = nil
		for _, name := range args[2:] {
			if r := s.engine.table.lookupShown(name); r != nil {
				found = append(found, r)
			}
		}
	}
	s.replyDocs(found)
	return nil
}

func (s *Session) replyDocs(rows []*row) {
	s.w.Map(len(rows))
	for _, r := range rows {
		s.w.BulkString(r.fullName())
		s.replyDoc(r)
	}
}

func (s *Session) replyDoc(r *row) {
	isModule := r.flags&flagModule != 0
	fields := 4
	for _, more := range []bool{isModule, r.args != nil, r.subs != nil} {
		if more {
			fields++
		}
	}
	s.w.Map(fields)
	s.replyPair("summary", r.summary)
	s.replyPair("since", r.since)
	s.replyPair("group", r.group)
	s.replyPair("complexity", r.complexity)
	if isModule {
		s.replyPair("module", moduleName)
	}
	if r.args != nil {
		s.w.BulkString("arguments")
		s.replyArgs(r.args)
	}
	if r.subs != nil {
		s.w.BulkString("subcommands")
		s.replyDocs(r.subs)
	}
}

func (s *Session) replyPair(name, value string) {
	s.w.BulkString(name)
	s.w.BulkString(value)
}

func (s *Session) replyArgs(args []arg) {
	s.w.Array(len(args))
	for _, a := range args {
		flags := a.flags()
		fields := 2
		for _, more := range []bool{a.kind == "key", a.token != "", flags != nil, a.args != nil} {
			if more {
				fields++
			}
		}
		s.w.Map(fields)
		s.replyPair("name", a.name)
		s.replyPair("type", a.kind)
		if a.kind == "key" {
			s.w.BulkString("key_spec_index")
			s.w.Int(0)
		}
		if a.token != "" {
			s.replyPair("token", a.token)
		}
		if flags != nil {
			s.w.BulkString("flags")
			s.replyStatuses(flags)
		}
		if a.args != nil {
			s.w.BulkString("arguments")
			s.replyArgs(a.args)
		}
	}
}

func (a arg) flags() (names []string) {
	if a.optional {
		names = append(names, "optional")
	}
	if a.multiple {
		names = append(names, "multiple")
	}
	return names
}

// commandList is COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern].
func commandList(s *Session, args [][]byte) error {
	accept := func(*row) bool { return true }
	if len(args) > 2 {
		if len(args) != 5 || lower(args[2]) != "filterby" {
			return errSyntax
		}
		wanted := args[4]
		switch lower(args[3]) {
		case "module":
			accept = func(r *row) bool { return r.flags&flagModule != 0 && string(wanted) == moduleName }
		case "aclcat":
			accept = func(r *row) bool { return slices.Contains(r.aclCategories(), lower(wanted)) }
		case "pattern":
			accept = func(r *row) bool { return matches(r.fullName(), wanted) }
		default:
			return errSyntax
		}
	}
	var names []string
	for _, r := range s.engine.table.rows {
		for _, r := range append([]*row{r}, r.subs...) {
			if accept(r) {
				names = append(names, r.fullName())
			}
		}
	}
	s.w.Array(len(names))
	for _, name := range names {
		s.w.BulkString(name)
	}
	return nil
}

// maxNames bounds what one COMMAND or CONFIG GET may ask for: a name costs six bytes, and its answer kilobytes.
const maxNames = 128

func checkNames(names [][]byte) error {
	if len(names) > maxNames {
		return replyError("ERR more than " + strconv.Itoa(maxNames) + " names or patterns; ask for all of them instead")
	}
	return nil
}

const maxPatternBytes = 64 // longer than any name; the work of a match grows with it

// matches reports whether the name of a command or setting matches a pattern.
func matches(name string, pattern []byte) bool {
	return len(pattern) <= maxPatternBytes && glob.MatchFold(pattern, []byte(name))
}

func helpRow() *row {
	return &row{
		name: "help", arity: 2, flags: flagLoading | flagStale, run: help,
		since: "5.0.0", complexity: "O(1)", summary: "Prints this help",
	}
}

// help lists the subcommands of the command in args[0].
func help(s *Session, args [][]byte) error {
	r := s.engine.table.lookup(args[0])
	s.replyHelp(r.name, r.subs)
	return nil
}

func (s *Session) replyHelp(name string, subs []*row) {
	s.w.Array(1 + 2*len(subs))
	s.w.Status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range subs {
		usage := []string{strings.ToUpper(sub.name)}
		for _, a := range sub.args {
			usage = append(usage, a.usage())
		}
		s.w.Status(strings.Join(usage, " "))
		s.w.Status("    " + sub.summary + ".")
	}
}

func (a arg) usage() string {
	text := "<" + a.name + ">"
	if a.args != nil {
		choices := make([]string, len(a.args))
		for i, choice := range a.args {
			choices[i] = choice.usage()
		}
		text = strings.Join(choices, "|")
	}
	switch {
	case a.kind == "pure-token":
		text = a.token
	case a.token != "":
		text = strings.TrimSpace(a.token + " " + text)
	}
	if a.multiple {
		text += " ..."
	}
	if a.optional {
		text = "[" + text + "]"
	}
	return text
}
