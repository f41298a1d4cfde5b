// Package flagvalue has the types of flags and their errors: one line with the flag, the permitted values, an
// example and the given value. Values are not safe for concurrent use.
package flagvalue

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/nearest"

	"github.com/spf13/pflag"
)

// Wrong is an error of Set.
type Wrong struct {
	Takes  string // permitted values and an example
	Meant  string // perhaps intended
	Secret bool   // the given value must not be shown
}

func (e *Wrong) Error() string { return "takes " + e.Takes }

const maxQuotedBytes = 64

// Describe returns the error for a value of a flag or of a line in a file.
func Describe(name, given string, err error) error {
	var wrong *Wrong
	if !errors.As(err, &wrong) {
		wrong = &Wrong{Takes: "true or false"} // of pflag's own values, only a bool can be wrong
	}
	if wrong.Secret {
		given = hidden
	}
	text := name + " takes " + wrong.Takes + "; got " + Quote(given)
	if wrong.Meant != "" {
		text += "; did you mean " + wrong.Meant + "?"
	}
	return errors.New(text)
}

const hidden = "..." // stands for what is not shown

// Quote quotes a word for a message: shortened, and without what stands before an @, which may be a password.
func Quote(given string) string {
	if at := strings.LastIndexByte(given, '@'); at >= 0 {
		given = hidden + given[at:]
	}
	if len(given) > maxQuotedBytes {
		given = given[:maxQuotedBytes] + "..."
	}
	return strconv.Quote(given)
}

// Func is a value defined by functions.
type Func struct {
	Kind  string // of value, for the help, where the usage names none
	Takes string // see Wrong
	Get   func() string
	Set   func(text string) bool // reports whether text is accepted
}

// FuncVar defines a flag by functions.
func FuncVar(fs *pflag.FlagSet, f Func, name, usage string) { fs.Var(&funcValue{f}, name, usage) }

type funcValue struct{ Func }

func (v *funcValue) String() string {
	if v.Get == nil {
		return "" // the zero value, pflag's reference
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

// Choice is one of a few words, or a default other than these.
type Choice struct {
	to      *string
	initial string
	words   []string
}

// ChoiceVar defines a flag with a choice of words.
func ChoiceVar(fs *pflag.FlagSet, p *string, name, initial, usage string, words ...string) {
	*p = initial
	fs.Var(&Choice{p, initial, words}, name, usage)
}

// Words returns the accepted words, for completion.
func (c *Choice) Words() []string { return c.words }

func (c *Choice) String() string { return *c.to }

func (c *Choice) Type() string { return strings.Join(c.words, "|") }

func (c *Choice) Set(text string) error {
	if text != c.initial && !slices.Contains(c.words, text) {
		return &Wrong{Takes: Or(c.words), Meant: nearest.Word(text, c.words)}
	}
	*c.to = text
	return nil
}

// Or joins words by commas and "or".
func Or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Switch is a bool with its own two words. It accepts other switches' words, too.
type Switch struct {
	to      *bool
	yes, no string
}

// SwitchVar defines a flag with its own two words.
func SwitchVar(fs *pflag.FlagSet, p *bool, name, yes, no, usage string) {
	fs.Var(&Switch{p, yes, no}, name, usage)
}

// BoolVar defines a flag without a value.
func BoolVar(fs *pflag.FlagSet, p *bool, name, usage string) {
	fs.VarPF(&Switch{p, "true", "false"}, name, "", usage).NoOptDefVal = "true"
}

// Words returns the switch's own words.
func (s *Switch) Words() []string { return []string{s.yes, s.no} }

func (s *Switch) String() string {
	if *s.to {
		return s.yes
	}
	return s.no
}

func (s *Switch) Type() string {
	if s.yes == "true" {
		return "bool" // needs no value in the help
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
		return &Wrong{Takes: s.yes + " or " + s.no, Meant: nearest.Word(text, s.Words())}
	}
	return nil
}

// List is a list of words.
type List struct {
	to      *[]string
	takes   string
	check   func(word string) bool
	secret  bool
	changed bool
}

// ListVar defines a flag for words separated by commas or given repeatedly, all accepted by check.
func ListVar(fs *pflag.FlagSet, p *[]string, name, usage, takes string, check func(word string) bool) {
	fs.Var(&List{to: p, takes: takes, check: check}, name, usage)
}

// SecretListVar is ListVar for words that no error may show.
func SecretListVar(fs *pflag.FlagSet, p *[]string, name, usage, takes string, check func(word string) bool) {
	fs.Var(&List{to: p, takes: takes, check: check, secret: true}, name, usage)
}

func (l *List) String() string { return strings.Join(*l.to, ",") }

func (l *List) Type() string { return "words" }

// Set replaces the default at first and appends later, like pflag's slices.
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

// Replace sets a whole list.
func (l *List) Replace(words []string) error {
	for _, word := range words {
		if !l.check(word) {
			return &Wrong{Takes: l.takes, Secret: l.secret}
		}
	}
	*l.to, l.changed = words, true
	return nil
}
