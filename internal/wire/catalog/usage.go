package catalog

import (
	"slices"
	"strings"

	"cellserver/internal/base/nearest"
	"cellserver/internal/wire/glob"
)

// IsLimiters reports whether a command is one of limiters, which Redis has not: its name begins as only this
// server's do.
func (c *Command) IsLimiters() bool {
	name := c.FullName()
	return strings.HasPrefix(name, "cl.") || strings.HasPrefix(name, "rl.")
}

// Usage returns how a call is written, as HELP shows its arguments.
func (c *Command) Usage() string {
	words := []string{strings.ToUpper(c.Name)}
	if c.Parent != "" {
		words = []string{strings.ToUpper(c.Parent), words[0]}
	} else if c.Subs != nil {
		var subs []string
		for _, sub := range c.ShownSubs() {
			subs = append(subs, strings.ToUpper(sub.Name))
		}
		words = append(words, strings.Join(subs, "|"), "...")
	}
	for _, a := range c.Args {
		words = append(words, a.Usage())
	}
	return strings.Join(words, " ")
}

// Usage returns how an argument is written: <name> for its value, [] around one that may be missing.
func (a *Arg) Usage() string {
	text := "<" + a.Name + ">"
	if a.Args != nil {
		parts := make([]string, len(a.Args))
		for i := range parts {
			parts[i] = a.Args[i].Usage()
		}
		text = strings.Join(parts, a.separator())
	}
	switch {
	case a.Type == "pure-token":
		text = a.Token
	case a.Token != "":
		text = strings.TrimSpace(a.Token + " " + text)
	}
	if a.Multiple {
		text += " ..."
	}
	if a.Optional {
		text = "[" + text + "]"
	}
	return text
}

// separator sets choices of several words apart by spaces.
func (a *Arg) separator() string {
	hasWords := func(choice Arg) bool { return choice.Args != nil || choice.Token != "" && choice.Type != "pure-token" }
	switch {
	case a.Type == "block":
		return " "
	case slices.ContainsFunc(a.Args, hasWords):
		return " | "
	}
	return "|"
}

// IsProbe reports whether clients send a call when they connect, only to learn whether the server has it:
// they go on without it. An open-source Redis without Sentinel and cluster mode has none of these.
func IsProbe(args [][]byte) bool {
	is := func(command, sub string) bool { return glob.IsFolded(args[0], command) && glob.IsFolded(args[1], sub) }
	return len(args) > 1 && (is("client", "maint_notifications") || is("sentinel", "masters") || is("cluster", "nodes"))
}

// Meant returns the name of the limiters' command that an unknown name is like, with or without its prefix,
// or "". The time that it takes is bounded.
func (t *Catalog) Meant(name []byte) string {
	if len(name) > maxNameBytes {
		return ""
	}
	folded := glob.Fold(name)
	if c := t.byName["cl."+folded]; c != nil && c.Refusal == "" {
		return c.Name
	}
	if !strings.Contains(folded, ".") && !strings.HasPrefix(folded, "cl") {
		return ""
	}
	return nearest.Word(folded, t.limiters)
}

// MeantSub returns the name of the subcommand that an unknown name is like, or "".
func (c *Command) MeantSub(name []byte) string {
	if len(name) > maxNameBytes || !c.IsLimiters() {
		return ""
	}
	subs := c.ShownSubs()
	names := make([]string, len(subs))
	for i := range subs {
		names[i] = subs[i].Name
	}
	return nearest.Word(glob.Fold(name), names)
}
