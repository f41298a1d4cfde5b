package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// ruleSet has a user's rules, and is immutable once a user has it.
type ruleSet struct {
	enabled    bool
	noPassword bool
	payload    string // "sanitize-payload", "skip-sanitize-payload" or ""; shown without effect
	passwords  [][sha256.Size]byte
	selectors  []selector // the user's own, then those in parentheses

	unrestricted bool // derived, as is description
	description  Description
}

// newRuleSet returns the rules of a new user, which allow nothing.
func (c *catalog) newRuleSet() *ruleSet {
	return &ruleSet{selectors: []selector{c.newSelector()}}
}

// finish computes the derived fields of a set before a user gets it.
func (c *catalog) finish(set *ruleSet) *ruleSet {
	set.description = c.describe(set)
	set.unrestricted = false
	for i := range set.selectors {
		s := &set.selectors[i]
		s.runnable = slices.Clone(s.commands)
		for id, cmd := range c.commands {
			s.runnable.set(id, cmd.NoAuth || s.runnable.has(id))
		}
		set.unrestricted = set.unrestricted || set.enabled && s.allKeys && c.hasAll(s.runnable)
	}
	return set
}

// applyAll applies rules in order and reports every invalid one, after which the set must not be used.
func (r *ruleReader) applyAll(set *ruleSet, rules []string, report func(rule string, err error)) {
	merged, err := mergeSelectors(rules)
	if err != nil {
		report("", err)
		return
	}
	for _, rule := range merged {
		rule = strings.Trim(rule, "\t\r\n")
		if err := r.apply(set, rule); err != nil {
			report(rule, err)
		}
	}
}

// mergeSelectors joins the words of each (selector) into one rule.
func mergeSelectors(words []string) (rules []string, err error) {
	open := -1 // start of an unfinished selector
	for i, word := range words {
		if open < 0 && strings.HasPrefix(word, "(") {
			open = i
		}
		switch {
		case open < 0:
			rules = append(rules, word)
		case strings.HasSuffix(word, ")"):
			rules = append(rules, strings.Join(words[open:i+1], " "))
			open = -1
		}
	}
	if open >= 0 {
		return nil, errParenthesis
	}
	return rules, nil
}

func (r *ruleReader) apply(set *ruleSet, rule string) error {
	switch word := lower(rule); word {
	case "":
	case "on", "off":
		set.enabled = word == "on"
	case "nopass", "resetpass":
		set.noPassword, set.passwords = word == "nopass", nil
	case "sanitize-payload", "skip-sanitize-payload":
		set.payload = word
	case "clearselectors":
		set.selectors = set.selectors[:1]
	case "reset":
		*set = *r.newRuleSet()
		set.payload = "sanitize-payload"
	default:
		switch sign := rule[0]; {
		case sign == '>', sign == '#', sign == '<', sign == '!':
			return set.applyPassword(sign, rule[1:])
		case sign == '(' && strings.HasSuffix(rule, ")"):
			s, err := r.readSelector(rule[1 : len(rule)-1])
			set.selectors = append(set.selectors, s)
			return err // with one, the set is not used
		}
		return r.applyToSelector(&set.selectors[0], rule)
	}
	return nil
}

// applyPassword adds a password (>, # as its hash) or removes one (<, !).
func (set *ruleSet) applyPassword(sign byte, given string) error {
	hash := sha256.Sum256([]byte(given))
	if sign == '#' || sign == '!' {
		if len(given) != hex.EncodedLen(len(hash)) || given != lower(given) {
			return errHash
		}
		if _, err := hex.Decode(hash[:], []byte(given)); err != nil {
			return errHash
		}
	}
	at := slices.Index(set.passwords, hash)
	switch add := sign == '>' || sign == '#'; {
	case add:
		set.noPassword = false
		if at < 0 {
			set.passwords = append(set.passwords, hash)
		}
	case at < 0:
		return errNoSuchPassword
	default:
		set.passwords = slices.Delete(set.passwords, at, at+1)
	}
	return nil
}

// readSelector parses the text in parentheses. It refuses quotes, and patterns ending in a parenthesis,
// because they cannot be read back from the output; Redis accepts quotes, and ignores a selector with an
// unclosed one.
func (r *ruleReader) readSelector(text string) (selector, error) {
	s := r.newSelector()
	if strings.ContainsAny(text, `"'`) {
		return s, errQuotes
	}
	for _, rule := range strings.FieldsFunc(text, func(c rune) bool { return hasSpace(string(c)) }) {
		if strings.HasSuffix(rule, ")") {
			return s, errSyntax
		}
		if err := r.applyToSelector(&s, rule); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ruleError is an error in a rule, in Redis's words where it has the same.
type ruleError string

func (e ruleError) Error() string { return string(e) }

const (
	errSyntax      ruleError = "Syntax error"
	errUnknownName ruleError = "Unknown command or category name in ACL"
	errFirstArg    ruleError = "Allowing first-arg of a subcommand is not supported"
	errAfterAll    ruleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not " +
		"have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errAfterAllChannels ruleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and " +
		"does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errNoSuchPassword ruleError = "The password you are trying to remove from the user does not exist"
	errHash           ruleError = "The password hash must be exactly 64 characters and contain only lowercase " +
		"hexadecimal characters"
	errParenthesis ruleError = "Unmatched parenthesis in selector definition"
	errQuotes      ruleError = "A selector cannot contain quotes: use ? in a pattern instead of a quote"
)

// FileError has all errors of an aclfile in one line: Redis's reply to ACL LOAD, without its code.
type FileError struct {
	text  string
	cause error // if the file could not be read
}

func (e *FileError) Error() string { return e.text }

func (e *FileError) Unwrap() error { return e.cause }

const maxFileErrors = 16 // reported of one file

func newFileError(problems []string) *FileError {
	var b strings.Builder
	for _, problem := range problems[:min(len(problems), maxFileErrors)] {
		b.WriteString(problem + ". ")
	}
	if more := len(problems) - maxFileErrors; more > 0 {
		b.WriteString("And " + strconv.Itoa(more) + " more errors. ")
	}
	b.WriteString("WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	return &FileError{text: b.String()}
}

// maxPrintedBytes bounds the words of a file in its errors: a wrong name may be that of another file.
const maxPrintedBytes = 32

// printable shortens a text and escapes its control bytes.
func printable(s string) string {
	var b strings.Builder
	for _, c := range []byte(s[:min(len(s), maxPrintedBytes)]) {
		if c < ' ' || c == 0x7f {
			b.WriteString(`\x` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
