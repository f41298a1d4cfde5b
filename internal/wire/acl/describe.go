package acl

import (
	"encoding/hex"
	"slices"
	"strings"
)

// Permissions is a selector as text: rules that produce it, in Redis's syntax.
type Permissions struct {
	Commands, Keys, Channels string
}

// Description is what ACL GETUSER returns for a user.
type Description struct {
	Flags       []string
	Passwords   []string // SHA-256 in hexadecimal
	Permissions          // the user's own
	Selectors   []Permissions

	line string // in ACL LIST, without the name
}

func (c *catalog) describe(set *ruleSet) Description {
	d := Description{Flags: []string{"off"}, Permissions: c.describeSelector(&set.selectors[0])}
	if set.enabled {
		d.Flags[0] = "on"
	}
	if set.noPassword {
		d.Flags = append(d.Flags, "nopass")
	}
	if set.payload != "" {
		d.Flags = append(d.Flags, set.payload)
	}
	words := slices.Clone(d.Flags)
	for _, password := range set.passwords {
		d.Passwords = append(d.Passwords, hex.EncodeToString(password[:]))
		words = append(words, "#"+d.Passwords[len(d.Passwords)-1])
	}
	words = append(words, d.rules())
	for i := range set.selectors[1:] {
		p := c.describeSelector(&set.selectors[i+1])
		d.Selectors = append(d.Selectors, p)
		words = append(words, "("+p.rules()+")")
	}
	d.line = strings.Join(words, " ")
	return d
}

// rules returns the permissions as one line.
func (p Permissions) rules() string {
	keys, channels := p.Keys, p.Channels
	if keys != "" {
		keys += " "
	}
	if channels != "&*" {
		channels = strings.TrimSpace("resetchannels " + channels)
	}
	return keys + channels + " " + p.Commands
}

func (c *catalog) describeSelector(s *selector) (p Permissions) {
	var keys, channels []string
	if s.allKeys {
		keys = []string{"~*"}
	}
	for _, k := range s.keys {
		sign := map[Access]string{Read: "%R~", Write: "%W~", Read | Write: "~"}[k.access]
		keys = append(keys, sign+k.text)
	}
	if s.allChannels {
		channels = []string{"&*"}
	}
	for _, channel := range s.channels {
		channels = append(channels, "&"+channel)
	}
	p.Keys, p.Channels = strings.Join(keys, " "), strings.Join(channels, " ")
	p.Commands = strings.Join(c.describeCommands(s), " ")
	return p
}

// describeCommands returns rules that produce the selector's set of commands. Like Redis 7.0, which does not
// store the rules either, it starts from +@all or -@all, applies the nearest categories, and then single
// commands, here sorted by name.
func (c *catalog) describeCommands(s *selector) (rules []string) {
	adding := !s.future
	made := c.newBitset() // by the rules so far
	c.setAll(made, !adding)
	rules = append(rules, sign(!adding)+"@all")
	left := slices.Clone(s.commands) // not yet covered
	var applied []string
	for {
		best := c.nearestCategory(left, adding, applied)
		if best == "" {
			break
		}
		applied = append(applied, best)
		rules = append(rules, sign(adding)+"@"+best)
		c.setCategory(made, best, adding)
		c.setCategory(left, best, !adding)
	}
	for _, id := range c.topLevel {
		rules = c.describeSingle(rules, s, made, id)
		for _, sub := range c.subs[id] {
			rules = c.describeSingle(rules, s, made, sub)
		}
	}
	return rules
}

// nearestCategory returns the category whose commands differ least from the set and, among equals, agree
// most; "" if none agrees more than it differs.
func (c *catalog) nearestCategory(set bitset, adding bool, applied []string) (best string) {
	fewest, most := len(c.commands), 0
	for _, category := range c.categories {
		if slices.Contains(applied, category) {
			continue
		}
		agree, differ := 0, 0
		for _, id := range c.members[category] {
			if set.has(id) == adding {
				agree++
			} else {
				differ++
			}
		}
		if agree > differ && (differ < fewest || differ == fewest && agree > most) {
			best, fewest, most = category, differ, agree
		}
	}
	return best
}

// describeSingle adds a command's own rules.
func (c *catalog) describeSingle(rules []string, s *selector, made bitset, id int) []string {
	on, name := s.commands.has(id), c.commands[id].Name
	if on != made.has(id) {
		rules = append(rules, sign(on)+name)
		c.setCommand(made, id, on)
	}
	if !on {
		for _, arg := range s.firstArg[id] {
			rules = append(rules, "+"+name+"|"+arg)
		}
	}
	return rules
}

func sign(on bool) string {
	if on {
		return "+"
	}
	return "-"
}
