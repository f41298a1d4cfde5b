// Package acl holds users and decides whether one may run a command on keys, by Redis 7's access control
// lists. It is safe for concurrent use.
//
// An aclfile written for Redis works unchanged: commands that only Redis has are accepted without effect, and
// all of Redis's categories exist, even empty ones. Unknown names are errors, as in Redis.
package acl

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
)

// DefaultName is the user of new sessions, which always exists.
const DefaultName = "default"

// Users holds all users by name.
type Users struct {
	catalog *catalog

	mu     sync.RWMutex // rank 90: guards the map, and serializes changes of rules
	byName map[string]*User
	// open has the default user's rules without an aclfile: everything, with the password set, if any.
	open *ruleSet
	// loaded reports whether an aclfile was loaded, and loadedWhole whether it ended with a newline.
	loaded, loadedWhole bool
	defaultInFile       bool // whether that file has the default user
}

// NewUsers returns the default user alone: enabled, without a password, with all commands on all keys. Check
// identifies commands by their indexes.
func NewUsers(commands []Command) *Users {
	u := &Users{catalog: newCatalog(commands), byName: make(map[string]*User)}
	r := ruleReader{catalog: u.catalog}
	u.open = u.catalog.newRuleSet()
	r.applyAll(u.open, []string{"on", "nopass", "~*", "&*", "+@all"}, func(_ string, err error) { panic(err) })
	u.catalog.finish(u.open)
	u.setRulesLocked(DefaultName, u.open)
	return u
}

// SetDefaultPassword sets the default user's only password, or removes it if empty, for requirepass. As in
// Redis, it replaces that of an aclfile until the next load.
func (u *Users) SetDefaultPassword(password string) { u.setPassword(password, true) }

// SetPasswordWithoutFile is SetDefaultPassword but for a default user of an aclfile, which keeps its rules.
func (u *Users) SetPasswordWithoutFile(password string) { u.setPassword(password, false) }

func (u *Users) setPassword(password string, overFile bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = u.withPassword(u.open, password)
	if overFile || !u.defaultInFile {
		u.setRulesLocked(DefaultName, u.withPassword(u.byName[DefaultName].rules.Load(), password))
	}
}

// DefaultInFile reports whether the loaded aclfile has the default user.
func (u *Users) DefaultInFile() bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return u.defaultInFile
}

// withPassword returns a copy of a set with another password. Both share the selectors, which never change.
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

// Authenticate returns the user if it exists, is enabled, and has the password or requires none. Its duration
// does not reveal which condition fails.
func (u *Users) Authenticate(name, password []byte) (*User, bool) {
	given := sha256.Sum256(password)
	u.mu.RLock()
	user := u.byName[string(name)]
	u.mu.RUnlock()
	set := &ruleSet{passwords: make([][sha256.Size]byte, 1)}
	if user != nil {
		set = user.rules.Load()
	}
	equal := set.hasPassword(given)
	if user == nil || !set.enabled || !equal && !set.noPassword {
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

// AnyPassword reports whether a user can authenticate by a password of its own.
func (u *Users) AnyPassword() bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	for _, user := range u.byName {
		if set := user.rules.Load(); set.enabled && !set.noPassword && len(set.passwords) > 0 {
			return true
		}
	}
	return false
}

// Categories returns all categories that rules can name, in Redis's order.
func (u *Users) Categories() []string { return slices.Clone(u.catalog.categories) }

// CommandsIn returns the sorted full names of a category's commands, in any case; ok is false if there is
// none.
func (u *Users) CommandsIn(category string) (names []string, ok bool) {
	category = lower(category)
	for _, id := range u.catalog.members[category] {
		names = append(names, u.catalog.commands[id].Name)
	}
	slices.Sort(names)
	return names, slices.Contains(u.catalog.categories, category)
}
