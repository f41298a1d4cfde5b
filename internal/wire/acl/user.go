package acl

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"slices"
	"sync/atomic"

	"cellserver/internal/wire/glob"
)

// User is a user whose rules are replaced atomically while sessions hold it. A removed user may do nothing.
// As in Redis, disabling a user prevents authentication and does not affect authenticated sessions.
type User struct {
	name  string
	rules atomic.Pointer[ruleSet]
}

// Key is a key of a command, and how the command accesses it; or a channel, by the Access Channel.
type Key struct {
	Name   []byte
	Access Access
}

// Reason is the reason of a denial.
type Reason uint8

// The results of Check, and the other reasons in ACL LOG.
const (
	Allowed Reason = iota
	DeniedCommand
	DeniedKey
	DeniedChannel
	DeniedAuth // wrong name or password
)

// String returns the reason as in ACL LOG.
func (r Reason) String() string {
	return [...]string{"allowed", "command", "key", "channel", "auth"}[r]
}

// Name returns the user's name.
func (u *User) Name() string { return u.name }

// Enabled reports whether clients may authenticate as the user.
func (u *User) Enabled() bool { return u.rules.Load().enabled }

// NeedsPassword reports whether authentication as this user requires a password.
func (u *User) NeedsPassword() bool { return !u.rules.Load().noPassword }

// HasPassword reports whether a password of this SHA-256 is one of the user's.
func (u *User) HasPassword(sum [sha256.Size]byte) bool { return u.rules.Load().hasPassword(sum) }

// hasPassword takes a time that depends on the number of passwords alone.
func (set *ruleSet) hasPassword(sum [sha256.Size]byte) bool {
	equal := 0
	for i := range set.passwords {
		equal |= subtle.ConstantTimeCompare(sum[:], set.passwords[i][:])
	}
	return equal == 1
}

// Describe returns the user's rules as in ACL GETUSER. The caller must not modify them.
func (u *User) Describe() Description { return u.rules.Load().description }

// Line returns the user as in ACL LIST and in an aclfile.
func (u *User) Line() string { return "user " + u.name + " " + u.Describe().line }

// Unrestricted reports whether the user is enabled and may run every command on every key, so that Check is
// unnecessary, other than for channels.
func (u *User) Unrestricted() bool { return u.rules.Load().unrestricted }

// Check decides on a command, by its index in NewUsers, with keys or channels: one selector must allow the
// whole call. Otherwise denied is, as in Redis, the index of the first denied key or channel for the selector
// that got furthest.
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
	if reason == DeniedKey && keys[denied].Access == Channel {
		reason = DeniedChannel
	}
	return reason, denied
}

// mayUse reports whether a channel is allowed. Patterns are few and calls rare, so none is kept compiled.
func (s *selector) mayUse(channel []byte) bool {
	return s.allChannels || slices.ContainsFunc(s.channels, func(pattern string) bool {
		return glob.Compile([]byte(pattern)).Matches(channel)
	})
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
	if s.runnable.has(command) {
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
	if access == Channel {
		return s.mayUse(key)
	}
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		if k := &s.keys[i]; k.access&access == access && k.glob.Matches(key) {
			return true
		}
	}
	return false
}

const (
	// DefaultPasswordBits is the default of ACL GENPASS.
	DefaultPasswordBits = 256
	maxPasswordBits     = 4096
)

// GeneratePassword returns random hexadecimal digits with at least the given number of bits.
func GeneratePassword(bits int) (string, error) {
	if bits < 1 || bits > maxPasswordBits {
		return "", errors.New("ACL GENPASS argument must be the number of bits for the output password, a positive " +
			"number up to 4096")
	}
	digits := (bits + 3) / 4
	secret := make([]byte, (digits+1)/2)
	rand.Read(secret) // never fails
	return hex.EncodeToString(secret)[:digits], nil
}
