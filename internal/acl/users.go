// Package acl keeps users and answers whether one may run a command on keys, by the rules of Redis 7's access control
// lists. It knows no sessions, and of commands only their names and categories. All of it is safe for concurrent use.
//
// An aclfile written for a whole Redis can be used as it is: commands of Redis that this server does not have are
// accepted and have no effect, and Redis's categories are known whether or not there are commands in them. What
// neither knows is an error, as in Redis.
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

// Users are all users, by their names. There is always one named "default", which sessions begin as.
type Users struct {
	catalog *catalog

	mu     sync.RWMutex // guards the map, and orders changes of what users may do
	byName map[string]*User
	// open is what the default user has without an aclfile: everything, behind the password that was set, if any.
	open *ruleSet
}

// NewUsers returns the default user alone: on, without a password, all commands on all keys. Rules and Check know the
// commands by these names and their indexes.
func NewUsers(commands []Command) *Users {
	u := &Users{catalog: newCatalog(commands), byName: make(map[string]*User)}
	r := ruleReader{catalog: u.catalog}
	u.open = u.catalog.newRuleSet()
	r.applyAll(u.open, []string{"on", "nopass", "~*", "&*", "+@all"}, func(_ string, err error) { panic(err) })
	u.catalog.finish(u.open)
	u.setRulesLocked(DefaultName, u.open)
	return u
}

// SetDefaultPassword gives the default user this password alone, or none if it is empty: --requirepass and CONFIG SET
// requirepass.
func (u *Users) SetDefaultPassword(password string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = u.withPassword(u.open, password)
	u.setRulesLocked(DefaultName, u.withPassword(u.byName[DefaultName].rules.Load(), password))
}

// withPassword copies a set; the selectors, which do not change, are shared.
func (u *Users) withPassword(set *ruleSet, password string) *ruleSet {
	c := *set
	c.noPassword, c.passwords = password == "", nil
	if password != "" {
		c.passwords = [][sha256.Size]byte{sha256.Sum256([]byte(password))}
	}
	c.description = u.catalog.describe(&c)
	return &c
}

// setRulesLocked gives a user its rules, and makes the user if there is none of that name.
func (u *Users) setRulesLocked(name string, set *ruleSet) {
	user := u.byName[name]
	if user == nil {
		user = &User{name: name}
		u.byName[name] = user
	}
	user.rules.Store(set)
}

// Default is the user that sessions begin as.
func (u *Users) Default() *User { return u.Lookup(DefaultName) }

// Lookup returns the user of that name, or nil.
func (u *Users) Lookup(name string) *User {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.byName[name]
}

// Authenticate returns the user if it is there and on, and the password is one of its own or it needs none. What it
// compares, and so how long it takes, does not depend on which of these fails.
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

// All returns the users by their names: in the order of ACL LIST and ACL USERS.
func (u *Users) All() []*User {
	u.mu.RLock()
	all := slices.Collect(maps.Values(u.byName))
	u.mu.RUnlock()
	slices.SortFunc(all, func(a, b *User) int { return cmp.Compare(a.name, b.name) })
	return all
}

// Categories are all that rules may name, in Redis's order.
func (u *Users) Categories() []string { return slices.Clone(u.catalog.categories) }

// CommandsIn returns the full names of a category's commands, sorted; ok is false if there is no such category. The
// category's case does not matter.
func (u *Users) CommandsIn(category string) (names []string, ok bool) {
	category = lower(category)
	for _, id := range u.catalog.members[category] {
		names = append(names, u.catalog.commands[id].Name)
	}
	slices.Sort(names)
	return names, slices.Contains(u.catalog.categories, category)
}
