package acl

import (
	"slices"
	"strings"

	"cellserver/internal/wire/glob"
)

// Command is a command that rules can name.
type Command struct {
	Name       string // in lower case; "config|get" for a subcommand
	Parent     string // of a subcommand: "config"
	Categories []string
	NoAuth     bool // everyone may run it: AUTH, HELLO, QUIT, RESET
}

// catalog holds the commands, by index, and categories that rules can name. It is immutable.
type catalog struct {
	commands   []Command
	byName     map[string]int
	subs       map[int][]int // of a command with subcommands
	topLevel   []int         // the commands that are not subcommands, sorted by name
	categories []string      // Redis's in Redis's order, then others
	members    map[string][]int
	redisNames map[string]bool // all of Redis's commands; true with subcommands
}

// RedisCategories returns Redis's categories in Redis's order.
func RedisCategories() []string { return strings.Fields(redisCategories) }

const redisCategories = "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub " +
	"admin fast slow blocking dangerous connection transaction scripting"

func newCatalog(commands []Command) *catalog {
	c := &catalog{
		commands:   slices.Clone(commands),
		byName:     make(map[string]int, len(commands)),
		subs:       make(map[int][]int),
		categories: RedisCategories(),
		members:    make(map[string][]int),
		redisNames: redisNames(),
	}
	for id, cmd := range commands {
		c.byName[cmd.Name] = id
	}
	for id, cmd := range commands {
		if cmd.Parent == "" {
			c.topLevel = append(c.topLevel, id)
		} else if parent, ok := c.byName[cmd.Parent]; ok {
			c.subs[parent] = append(c.subs[parent], id)
		}
		for _, category := range cmd.Categories {
			if !slices.Contains(c.categories, category) {
				c.categories = append(c.categories, category)
			}
			c.members[category] = append(c.members[category], id)
		}
	}
	c.sortByName(c.topLevel)
	for _, subs := range c.subs {
		c.sortByName(subs)
	}
	return c
}

func redisNames() map[string]bool {
	names := make(map[string]bool)
	for _, name := range strings.Fields(redisCommands) {
		names[name] = false
	}
	for line := range strings.Lines(redisContainers) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		names[fields[0]] = true
		for _, sub := range fields[1:] {
			names[fields[0]+"|"+sub] = false
		}
	}
	return names
}

func (c *catalog) sortByName(ids []int) {
	slices.SortFunc(ids, func(a, b int) int { return strings.Compare(c.commands[a].Name, c.commands[b].Name) })
}

// bitset has one bit per command.
type bitset []uint64

func (c *catalog) newBitset() bitset { return make(bitset, (len(c.commands)+63)/64) }

func (b bitset) has(id int) bool { return b[id/64]&(1<<(id%64)) != 0 }

func (b bitset) set(id int, on bool) {
	if on {
		b[id/64] |= 1 << (id % 64)
	} else {
		b[id/64] &^= 1 << (id % 64)
	}
}

// setCommand sets a command and, as Redis does, all its subcommands.
func (c *catalog) setCommand(b bitset, id int, on bool) {
	b.set(id, on)
	for _, sub := range c.subs[id] {
		b.set(sub, on)
	}
}

func (c *catalog) setCategory(b bitset, category string, on bool) {
	for _, id := range c.members[category] {
		c.setCommand(b, id, on)
	}
}

func (c *catalog) setAll(b bitset, on bool) {
	for id := range c.commands {
		b.set(id, on)
	}
}

func (c *catalog) hasAll(b bitset) bool {
	for id := range c.commands {
		if !b.has(id) {
			return false
		}
	}
	return true
}

// lower folds the case of ASCII, as Redis does.
func lower(s string) string { return glob.Fold([]byte(s)) }

// equalFold compares without regard to ASCII case, and does not allocate.
func equalFold(a string, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		if glob.Lower(a[i]) != glob.Lower(b[i]) {
			return false
		}
	}
	return true
}
