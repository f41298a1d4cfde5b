// Package acl holds users and decides whether a user may run a command on keys, by the rules of Redis 7's access control
// lists. It does not depend on sessions, and knows only the names and categories of commands. It is safe for concurrent
// use.
//
// An aclfile written for Redis can be used unchanged: commands that only Redis has are accepted and have no effect, and all
// of Redis's categories exist, even empty ones. Unknown names are errors, as in Redis.
package acl

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"slices"
	"sync"
)

// DefaultName is the name of the user that there always is.
const DefaultName = "default"

// Users is all users by name. The user "default", with which sessions begin, always exists.
type Users struct {
	catalog *catalog

	mu     sync.RWMutex // guards the map, and serializes changes of rules
	byName map[string]*User
	// open is the rules of the default user without an aclfile: everything, with the password that was set, if any.
	open *ruleSet
	// loaded says that the users are those of an aclfile, and loadedWhole that it ended with a newline.
	loaded, loadedWhole bool
}

// NewUsers returns only the default user: enabled, without a password, with all commands on all keys. Rules use these names
// of commands, and Check their indexes.
func NewUsers(commands []Command) *Users {
	u := &Users{catalog: newCatalog(commands), byName: make(map[string]*User)}
	r := ruleReader{catalog: u.catalog}
	u.open = u.catalog.newRuleSet()
	r.applyAll(u.open, []string{"on", "nopass", "~*", "&*", "+@all"}, func(_ string, err error) { panic(err) })
	u.catalog.finish(u.open)
	u.setRulesLocked(DefaultName, u.open)
	return u
}

// SetDefaultPassword makes this the only password of the default user, or removes it if empty: --requirepass and CONFIG SET
// requirepass.
func (u *Users) SetDefaultPassword(password string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = u.withPassword(u.open, password)
	u.setRulesLocked(DefaultName, u.withPassword(u.byName[DefaultName].rules.Load(), password))
}

// withPassword returns a copy of a set with another password. The selectors, which never change, are shared.
func (u *Users) withPassword(set *ruleSet, password string) *ruleSet {
	c := *set
	c.noPassword, c.passwords = password == "", nil
	if password != "" {
		c.passwords = [][sha256.Size]byte{sha256.Sum256([]byte(password))}
	}
	c.description = u.catalog.describe(&c)
	return &c
}

// setRulesLocked sets the rules of a user, and creates the user if necessary.
func (u *Users) setRulesLocked(name string, set *ruleSet) {
	user := u.byName[name]
	if user == nil {
		user = &User{name: name}
		u.byName[name] = user
	}
	user.rules.Store(set)
}

// Default returns the user with which sessions begin.
func (u *Users) Default() *User { return u.Lookup(DefaultName) }

// Lookup returns the user of that name, or nil.
func (u *Users) Lookup(name string) *User {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.byName[name]
}

// Authenticate returns the user if it exists, is enabled, and has the password or requires none. The duration does not
// depend on which of these conditions fails.
func (u *Users) Authenticate(name, password []byte) (*User, bool) {
	given := sha256.Sum256(password)
	u.mu.RLock()
	user := u.byName[string(name)]
	u.mu.RUnlock()
	set := &ruleSet{passwords: make([][sha256.Size]byte, 1)}
	if user != nil {
		set = user.rules.Load()
	}
	equal := 0
	for i := range set.passwords {
		equal |= subtle.ConstantTimeCompare(given[:], set.passwords[i][:])
	}
	if user == nil || !set.enabled || equal == 0 && !set.noPassword {
		return nil, false
	}
	return user, true
}

// All returns the users sorted by name, the order of ACL LIST and ACL USERS.
func (u *Users) All() []*User {
	u.mu.RLock()
	all := slices.Collect(maps.Values(u.byName))
	u.mu.RUnlock()
	slices.SortFunc(all, func(a, b *User) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Categories returns all categories that rules can name, in Redis's order.
func (u *Users) Categories() []string { return slices.Clone(u.catalog.categories) }

// CommandsIn returns the full names of a category's commands, sorted; ok is false if the category does not exist. Its case
// does not matter.
func (u *Users) CommandsIn(category string) (names []string, ok bool) {
	category = lower(category)
	for _, id := range u.catalog.members[category] {
		names = append(names, u.catalog.commands[id].Name)
	}
	slices.Sort(names)
	return names, slices.Contains(u.catalog.categories, category)
}
