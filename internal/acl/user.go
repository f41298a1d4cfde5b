package acl

import (
	"sync/atomic"

	"cellserver/internal/glob"
)

// User is who a session speaks for. It stays the same for as long as a session holds it; what it may do changes
// under it, at once and as a whole. A user that is gone may do nothing.
//
// Whether a user is on decides who may authenticate, and not what those may do that have: so it is in Redis.
type User struct {
	name  string
	rules atomic.Pointer[ruleSet]
}

// Key is a key of a command, and what the command does with it.
type Key struct {
	Name   []byte
	Access Access
}

// Reason is why something was denied.
type Reason uint8

// What Check answers, and what else ACL LOG tells of.
const (
	Allowed Reason = iota
	DeniedCommand
	DeniedKey
	DeniedChannel
	DeniedAuth // a wrong name or password
)

// String is the reason in ACL LOG.
func (r Reason) String() string {
	return [...]string{"allowed", "command", "key", "channel", "auth"}[r]
}

// Name is the user's name.
func (u *User) Name() string { return u.name }

// Enabled reports whether clients may authenticate as the user.
func (u *User) Enabled() bool { return u.rules.Load().enabled }

// NeedsPassword reports whether a client that names this user has to give a password.
func (u *User) NeedsPassword() bool { return !u.rules.Load().noPassword }

// Describe tells what the user may do, in the parts of ACL GETUSER. The caller does not change them.
func (u *User) Describe() Description { return u.rules.Load().description }

// Line is the user in ACL LIST and in an aclfile.
func (u *User) Line() string { return "user " + u.name + " " + u.Describe().line }

// Unrestricted reports whether the user is on and may run every command on every key, so that Check would be idle.
func (u *User) Unrestricted() bool { return u.rules.Load().unrestricted }

// MayRun reports whether the user may run the command on some keys, or on none. firstArg is its first argument
// behind its name, or nil.
func (u *User) MayRun(command int, firstArg []byte) bool {
	set := u.rules.Load()
	for i := range set.selectors {
		if set.selectors[i].mayRun(command, firstArg) {
			return true
		}
	}
	return false
}

// MayAccess reports whether the user may do this with the key, by some command. No access at all is what commands
// such as EXISTS have: any pattern will do.
func (u *User) MayAccess(key []byte, access Access) bool {
	set := u.rules.Load()
	for i := range set.selectors {
		if set.selectors[i].mayAccess(key, access) {
			return true
		}
	}
	return false
}

// Check reports whether the user may run a command, the index of one that NewUsers was given, on the keys: one
// selector has to allow all of it. If none does, denied is the key that was the obstacle, by its index, of the
// selector that got furthest, as Redis tells it.
func (u *User) Check(command int, firstArg []byte, keys []Key) (reason Reason, denied int) {
	reason = DeniedCommand
	set := u.rules.Load()
	for i := range set.selectors {
		s := &set.selectors[i]
		if !s.mayRun(command, firstArg) {
			continue
		}
		first := s.firstDenied(keys)
		if first < 0 {
			return Allowed, 0
		}
		reason, denied = DeniedKey, max(denied, first)
	}
	return reason, denied
}

func (s *selector) firstDenied(keys []Key) int {
	for i := range keys {
		if !s.mayAccess(keys[i].Name, keys[i].Access) {
			return i
		}
	}
	return -1
}

func (s *selector) mayRun(command int, firstArg []byte) bool {
	if s.runs.has(command) {
		return true
	}
	for _, arg := range s.firstArg[command] {
		if firstArg != nil && equalFold(arg, firstArg) {
			return true
		}
	}
	return false
}

func (s *selector) mayAccess(key []byte, access Access) bool {
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		if k := &s.keys[i]; k.access&access == access && glob.Match(k.glob, key) {
			return true
		}
	}
	return false
}
