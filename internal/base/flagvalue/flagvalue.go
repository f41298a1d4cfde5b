// Package flagvalue is the values that flags take, and what is said of those that they do not take: one line with the flag, what
// it takes and an example, and what was given, in words of the command line and not of a parser. Values are not safe for
// concurrent use.
package flagvalue

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Wrong is the error of a value's Set.
type Wrong struct {
	Takes string // what is taken instead, and an example
	Meant string // what was meant, perhaps
}

func (e *Wrong) Error() string { return "takes " + e.Takes }

const maxQuotedBytes = 64

// Describe says what is wrong with a value that was given for what name names, such as a flag or a line of a file.
func Describe(name, given string, err error) error {
	var wrong *Wrong
	if !errors.As(err, &wrong) {
		wrong = &Wrong{Takes: "true or false"} // of pflag's own values only a bool can be wrong
	}
	if len(given) > maxQuotedBytes {
		given = given[:maxQuotedBytes] + "..."
	}
	text := name + " takes " + wrong.Takes + "; got " + strconv.Quote(given)
	if wrong.Meant != "" {
		text += "; did you mean " + wrong.Meant + "?"
	}
	return errors.New(text)
}

// Func is a value by functions.
type Func struct {
	Kind  string // of value, for the help where the usage names none
	Takes string // what, and an example, as Wrong has it
	Get   func() string
	Set   func(text string) bool // whether the text is taken
}

// FuncVar defines a flag with a value by functions.
func FuncVar(fs *pflag.FlagSet, f Func, name, usage string) { fs.Var(&funcValue{f}, name, usage) }

type funcValue struct{ Func }

func (v *funcValue) String() string {
	if v.Get == nil {
		return "" // of the zero value, which pflag compares with
	}
	return v.Get()
}

func (v *funcValue) Type() string { return v.Kind }

func (v *funcValue) Set(text string) error {
	if !v.Func.Set(text) {
		return &Wrong{Takes: v.Takes}
	}
	return nil
}

// Choice is a value that is one of a few words, or its default, which may be none of them.
type Choice struct {
	to      *string
	initial string
	words   []string
}

// ChoiceVar defines a flag that takes one of words.
func ChoiceVar(fs *pflag.FlagSet, p *string, name, initial, usage string, words ...string) {
	*p = initial
	fs.Var(&Choice{p, initial, words}, name, usage)
}

// Words are those that are taken, for who completes them.
func (c *Choice) Words() []string { return c.words }

func (c *Choice) String() string { return *c.to }

func (c *Choice) Type() string { return strings.Join(c.words, "|") }

func (c *Choice) Set(text string) error {
	if text != c.initial && !slices.Contains(c.words, text) {
		return &Wrong{Takes: Or(c.words), Meant: Nearest(text, c.words)}
	}
	*c.to = text
	return nil
}

// Or lists words.
func Or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Switch is a value with two words of its own. It takes those of other switches, too.
type Switch struct {
	to      *bool
	yes, no string
}

// SwitchVar defines a flag with two words.
func SwitchVar(fs *pflag.FlagSet, p *bool, name, yes, no, usage string) {
	fs.Var(&Switch{p, yes, no}, name, usage)
}

// BoolVar defines a flag that needs no value.
func BoolVar(fs *pflag.FlagSet, p *bool, name, usage string) {
	fs.VarPF(&Switch{p, "true", "false"}, name, "", usage).NoOptDefVal = "true"
}

// Words are the two of its own.
func (s *Switch) Words() []string { return []string{s.yes, s.no} }

func (s *Switch) String() string {
	if *s.to {
		return s.yes
	}
	return s.no
}

func (s *Switch) Type() string {
	if s.yes == "true" {
		return "bool" // which help knows to need no value
	}
	return s.yes + "|" + s.no
}

func (s *Switch) Set(text string) error {
	switch text {
	case "yes", "on", "true":
		*s.to = true
	case "no", "off", "false":
		*s.to = false
	default:
		return &Wrong{Takes: s.yes + " or " + s.no, Meant: Nearest(text, s.Words())}
	}
	return nil
}

// List is a value that is a list of words.
type List struct {
	to      *[]string
	takes   string
	check   func(word string) bool
	changed bool
}

// ListVar defines a flag that takes words, separated by commas or given one by one, each of which check takes.
func ListVar(fs *pflag.FlagSet, p *[]string, name, usage, takes string, check func(word string) bool) {
	fs.Var(&List{to: p, takes: takes, check: check}, name, usage)
}

func (l *List) String() string { return strings.Join(*l.to, ",") }

func (l *List) Type() string { return "words" }

// Set implements pflag.Value: the first call replaces the default, and others append, as pflag's slices do.
func (l *List) Set(text string) error {
	words := strings.Split(text, ",")
	if text == "" {
		words = nil
	}
	if l.changed {
		words = append(*l.to, words...)
	}
	return l.Replace(words)
}

// Replace is Set with a list.
func (l *List) Replace(words []string) error {
	for _, word := range words {
		if !l.check(word) {
			return &Wrong{Takes: l.takes}
		}
	}
	*l.to, l.changed = words, true
	return nil
}
