package catalog

import (
	"bytes"
	"slices"
	"strconv"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
)

// KeySpec locates the keys of a call: arguments First to Last by Step, counted from the name at 0; a negative
// Last counts from the end, -1 being the last argument. The zero KeySpec has no keys.
type KeySpec struct {
	First, Last, Step int
	Flags             []string // of a call with all its options
	// SecondFlags are the flags of the second and last key if they differ, as RENAME's; else nil.
	SecondFlags []string
	// ReadBy are the options, in lower case, with which a call also reads the key that it writes; nil for
	// none.
	ReadBy []string
	// ReadByAt is the index of the first argument that may be such an option.
	ReadByAt int
	// NotReading are the flags of a call without them.
	NotReading []string
	// Counted is the index of the number of keys, which follow it, as in EVAL; 0 for none. Then First is 0.
	Counted int
	// With counts the arguments that follow each counted key and belong to it.
	With int
	// Pairs is set if each counted key is joined of two arguments.
	Pairs bool
	// Joined is the index of the first of two arguments that a colon joins to a key; 0 for none. Then First
	// is 0, and clients have to ask for the key.
	Joined int
}

// None reports whether the command has no keys.
func (k *KeySpec) None() bool { return k.First == 0 && k.Counted == 0 && k.Joined == 0 }

// AppendJoined appends the key joined of two arguments.
func AppendJoined(buf, name, key []byte) []byte {
	return append(append(append(buf, name...), ':'), key...)
}

// Longest returns the length of the longest key among args.
func (k *KeySpec) Longest(args [][]byte) (bytes int) {
	if k.First > 0 && k.First == k.Last && k.First < len(args) {
		return len(args[k.First])
	}
	if k.Joined > 0 && k.Joined+1 < len(args) { // without building it
		return len(args[k.Joined]) + 1 + len(args[k.Joined+1])
	}
	k.Each(args, func(key []byte) { bytes = max(bytes, len(key)) })
	return bytes
}

// Each calls visit with the keys among args.
func (k *KeySpec) Each(args [][]byte, visit func(key []byte)) {
	if k.Counted > 0 {
		for rest := k.counted(args); len(rest) > 0; rest = rest[1+k.With:] {
			if k.Pairs {
				visit(AppendJoined(nil, rest[0], rest[1]))
			} else {
				visit(rest[0])
			}
		}
		return
	}
	if k.Joined > 0 && k.Joined+1 < len(args) {
		visit(AppendJoined(nil, args[k.Joined], args[k.Joined+1]))
	}
	if k.First == 0 {
		return
	}
	last := k.Last
	if last < 0 {
		last += len(args)
	}
	for i := k.First; i <= last && i < len(args); i += k.Step {
		visit(args[i])
	}
}

// EachLimit calls visit with the names of limits among args.
func (k *KeySpec) EachLimit(args [][]byte, visit func(name []byte)) {
	switch {
	case k.Joined > 0 && k.Joined < len(args):
		visit(args[k.Joined])
	case k.Pairs:
		for rest := k.counted(args); len(rest) > 0; rest = rest[1+k.With:] {
			visit(rest[0])
		}
	}
}

// counted returns the counted keys with the arguments that belong to them; nil if any is missing.
func (k *KeySpec) counted(args [][]byte) [][]byte {
	if len(args) <= k.Counted {
		return nil
	}
	n, ok := resp.ParseInt(args[k.Counted])
	rest, step := args[k.Counted+1:], 1+k.With
	if !ok || n < 0 || n > int64(len(rest)/step) {
		return nil
	}
	return rest[:int(n)*step]
}

const variableFlags = "variable_flags" // as Redis flags a command with a ReadBy

// FlagsOf returns the flags of a call's keys.
func (k *KeySpec) FlagsOf(args [][]byte) []string {
	if k.ReadBy == nil {
		return k.Flags
	}
	for i := k.ReadByAt; i < len(args); i++ {
		if slices.Contains(k.ReadBy, glob.Fold(args[i])) {
			return slices.DeleteFunc(slices.Clone(k.Flags), func(flag string) bool { return flag == variableFlags })
		}
	}
	return k.NotReading
}

// Access returns the permissions that a call needs on its keys, but for a second with flags of its own: none
// for metadata.
func (k *KeySpec) Access(args [][]byte) (a acl.Access) { return accessOf(k.FlagsOf(args)) }

func accessOf(flags []string) (a acl.Access) {
	for _, f := range flags {
		switch f {
		case "access":
			a |= acl.Read
		case "update", "insert", "delete":
			a |= acl.Write
		}
	}
	return a
}

// Asks reports whether Check is necessary for a user.
func (c *Command) Asks(user *acl.User) bool { return !user.Unrestricted() || c.Flags&FlagPubSub != 0 }

// Check reports whether a user's rules allow a call, and the denied command or key. refund reports that only
// the return of units is denied, which needs the right to CL.RESET the keys: object is that, or a key.
func (c *Command) Check(user *acl.User, args [][]byte) (reason acl.Reason, object string, refund bool) {
	reason, object = c.check(user, args)
	if reason == acl.Allowed && c.reset != nil && c.refunds(args) {
		reason, object = c.reset.check(user, c.resetting(args))
		refund = reason != acl.Allowed
	}
	return reason, object, refund
}

// CheckKey is Check for a call about one key that is known by its first argument, the key, and whether it
// returns units.
func (c *Command) CheckKey(user *acl.User, first, key []byte, returns bool) (reason acl.Reason, object string, refund bool) {
	reason, object = c.checkKey(user, first, key)
	if reason == acl.Allowed && c.reset != nil && (returns || c.GivesUnits) {
		reason, object = c.reset.checkKey(user, key, key)
		refund = reason != acl.Allowed
	}
	return reason, object, refund
}

func (c *Command) checkKey(user *acl.User, first, key []byte) (reason acl.Reason, object string) {
	if c.Keys.None() {
		return c.checkKeys(user, first, nil)
	}
	one := [1]acl.Key{{Name: key, Access: c.Keys.Access(nil)}}
	return c.checkKeys(user, first, one[:])
}

// resetting returns the arguments of a CL.RESET of a call's keys.
func (c *Command) resetting(args [][]byte) [][]byte {
	if c.Keys.Joined == 0 {
		return args[c.Keys.First-1 : c.Keys.Last+1]
	}
	del := args[:1:1]
	c.Keys.Each(args, func(key []byte) { del = append(del, key) })
	return del
}

// refunds reports whether a call returns units. Too few arguments and an invalid quantity fail later.
func (c *Command) refunds(args [][]byte) bool {
	if c.GivesUnits {
		return len(args) > c.Keys.Last
	}
	if len(args) <= c.QuantityAt || !bytes.HasPrefix(args[c.QuantityAt], []byte("-")) {
		return false
	}
	quantity, err := strconv.ParseInt(string(args[c.QuantityAt]), 10, 64)
	return err == nil && quantity < 0
}

// channels returns the channels of a call for which a user needs rights.
func (c *Command) channels(args [][]byte) [][]byte {
	if c.Flags&FlagPubSub == 0 || len(args) <= 1 || c.Name == "unsubscribe" {
		return nil
	}
	if c.Arity > 0 { // a message follows
		return args[1:2]
	}
	return args[1:]
}

func (c *Command) check(user *acl.User, args [][]byte) (reason acl.Reason, object string) {
	var few [8]acl.Key // avoids an allocation for most calls
	keys := few[:0]
	if len(args) > len(few) {
		keys = make([]acl.Key, 0, len(args))
	}
	if channels := c.channels(args); channels != nil {
		for _, name := range channels {
			keys = append(keys, acl.Key{Name: name, Access: acl.Channel})
		}
		return c.checkKeys(user, nil, keys)
	}
	access := c.Keys.Access(args)
	c.Keys.Each(args, func(name []byte) { keys = append(keys, acl.Key{Name: name, Access: access}) })
	if c.Keys.SecondFlags != nil && len(keys) == 2 {
		keys[1].Access = accessOf(c.Keys.SecondFlags)
	}
	var first []byte
	if len(args) > 1 {
		first = args[1]
	}
	return c.checkKeys(user, first, keys)
}

// checkKeys checks a call with a first argument.
func (c *Command) checkKeys(user *acl.User, first []byte, keys []acl.Key) (reason acl.Reason, object string) {
	reason, denied := user.Check(c.ID, first, keys)
	switch reason {
	case acl.DeniedCommand:
		return reason, c.FullName()
	case acl.DeniedKey, acl.DeniedChannel:
		return reason, string(keys[denied].Name)
	default:
		return reason, ""
	}
}
