package acl

import (
	"slices"
	"strings"

	"cellserver/internal/wire/glob"
)

// Access has bits for reading and writing a key; neither is access to metadata.
type Access uint8

// The bits of an Access, %R~ and %W~, and the access to a channel.
const (
	Read Access = 1 << iota
	Write
	Channel
)

// selector is a set of commands and keys. A user has one or more.
type selector struct {
	commands bitset           // allowed by the rules
	runnable bitset           // derived: commands, and those that everyone may run
	future   bool             // starts from +@all, and so includes future commands
	firstArg map[int][]string // first arguments, in any case, with which a command is allowed

	allKeys     bool
	keys        []keyPattern
	allChannels bool
	channels    []string
}

type keyPattern struct {
	text   string
	glob   *glob.Pattern
	access Access
}

// ruleReader applies rules, and records commands that only Redis has.
type ruleReader struct {
	*catalog
	ignored []string
}

func (c *catalog) newSelector() selector { return selector{commands: c.newBitset()} }

func (r *ruleReader) applyToSelector(s *selector, rule string) error {
	switch lower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		r.setAll(s.commands, true)
		s.future, s.firstArg = true, nil
	case "nocommands", "-@all":
		r.setAll(s.commands, false)
		s.future, s.firstArg = false, nil
	default:
		return r.applySign(s, rule)
	}
	return nil
}

func (r *ruleReader) applySign(s *selector, rule string) error {
	switch sign := rule[0]; sign {
	case '~', '%':
		return s.addKeys(rule)
	case '&':
		return s.addChannels(rule[1:])
	case '+', '-':
		on, name := sign == '+', rule[1:]
		if category, ok := strings.CutPrefix(name, "@"); ok {
			return r.applyCategory(s, lower(category), on)
		}
		if on {
			return r.allow(s, name)
		}
		return r.deny(s, lower(name))
	}
	return errSyntax
}

// addKeys adds ~pattern or, with an access, %RW~pattern.
func (s *selector) addKeys(rule string) error {
	if s.allKeys {
		return errAfterAll
	}
	pattern, access := rule[1:], Read|Write
	if rule[0] == '%' {
		var letters string
		letters, pattern, _ = strings.Cut(pattern, "~")
		switch lower(letters) {
		case "r":
			access = Read
		case "w":
			access = Write
		case "rw", "wr":
		default:
			return errSyntax
		}
	}
	if hasSpace(pattern) {
		return errSyntax
	}
	i := slices.IndexFunc(s.keys, func(k keyPattern) bool { return k.text == pattern })
	if i < 0 {
		i = len(s.keys)
		s.keys = append(s.keys, keyPattern{text: pattern, glob: glob.Compile([]byte(pattern))})
	}
	s.keys[i].access |= access
	if pattern == "*" && s.keys[i].access == Read|Write {
		s.allKeys, s.keys = true, nil
	}
	return nil
}

func (s *selector) addChannels(pattern string) error {
	if s.allChannels {
		return errAfterAllChannels
	}
	if hasSpace(pattern) {
		return errSyntax
	}
	if !slices.Contains(s.channels, pattern) {
		s.channels = append(s.channels, pattern)
	}
	return nil
}

func (r *ruleReader) applyCategory(s *selector, category string, on bool) error {
	if !slices.Contains(r.categories, category) {
		return errUnknownName
	}
	for _, id := range r.members[category] {
		r.applyCommand(s, id, on)
	}
	return nil
}

func (r *ruleReader) applyCommand(s *selector, id int, on bool) {
	r.setCommand(s.commands, id, on)
	delete(s.firstArg, id)
}

// allow applies +command, +command|subcommand or +command|argument.
func (r *ruleReader) allow(s *selector, given string) error {
	name := lower(given)
	bar := strings.LastIndexByte(name, '|')
	if bar < 0 {
		return r.allowWhole(s, name)
	}
	container, arg := name[:bar], given[bar+1:]
	id, here := r.byName[container]
	divided, inRedis := r.redisNames[container]
	_, isSub := r.byName[name]
	switch {
	case !here && !inRedis:
		return errUnknownName
	case strings.Contains(container, "|"):
		return errFirstArg
	case arg == "" || hasSpace(arg):
		return errSyntax
	case here && r.subs[id] == nil:
		s.addFirstArg(id, arg)
		return nil
	case inRedis && !divided && !isSub: // Redis has it undivided; here it is missing, or has subcommands
		r.ignored = append(r.ignored, name)
		return nil
	}
	return r.allowWhole(s, name)
}

func (r *ruleReader) allowWhole(s *selector, name string) error {
	if id, ok := r.byName[name]; ok {
		r.applyCommand(s, id, true)
		return nil
	}
	return r.ignore(name)
}

func (s *selector) addFirstArg(id int, arg string) {
	if slices.ContainsFunc(s.firstArg[id], func(other string) bool { return equalFold(other, []byte(arg)) }) {
		return
	}
	if s.firstArg == nil {
		s.firstArg = make(map[int][]string)
	}
	s.firstArg[id] = append(s.firstArg[id], arg)
}

// deny applies -command or -command|subcommand. If only Redis has the subcommands, the whole command is
// denied, as no rule may permit more than in Redis.
func (r *ruleReader) deny(s *selector, name string) error {
	id, here := r.byName[name]
	if _, inRedis := r.redisNames[name]; !here && inRedis {
		container, _, _ := strings.Cut(name, "|")
		id, here = r.byName[container]
		here = here && r.subs[id] == nil
	}
	if !here {
		return r.ignore(name)
	}
	r.applyCommand(s, id, false)
	return nil
}

// ignore records a command that only Redis has.
func (r *ruleReader) ignore(name string) error {
	if _, inRedis := r.redisNames[name]; !inRedis {
		return errUnknownName
	}
	r.ignored = append(r.ignored, name)
	return nil
}

// hasSpace reports whether s has bytes at which Redis splits words, or NUL.
func hasSpace(s string) bool {
	return strings.ContainsAny(s, " \t\n\v\f\r\x00")
}
