package catalog

import (
	"bytes"
	"strconv"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
)

// KeySpec says which arguments are keys: first to last by step, counted from the name at 0; last may be negative, -1
// for the last argument. The zero KeySpec is a command without keys.
type KeySpec struct {
	First, Last, Step int
	Flags             []string // of a call with all its options
	// ReadBy is the option, in lower case, by which a call also reads the keys that it writes; "" where none decides that.
	ReadBy string
	// Counted is where the argument stands that says how many keys follow it, as in EVAL; then First is 0.
	Counted int
	// With is how many arguments behind each key that is counted belong to it.
	With int
	// Joined is where the first of two arguments stands that are one key, with a colon between them; 0 for none. Then First
	// is 0, and clients have to ask for the key.
	Joined int
}

// None reports whether the command has no keys.
func (k KeySpec) None() bool { return k.First == 0 && k.Counted == 0 && k.Joined == 0 }

// AppendJoined appends the key that two arguments are.
func AppendJoined(buf, name, key []byte) []byte {
	return append(append(append(buf, name...), ':'), key...)
}

// Longest returns how long the longest of the keys among args is.
func (k KeySpec) Longest(args [][]byte) (bytes int) {
	if k.Joined > 0 && k.Joined+1 < len(args) { // without making it
		return len(args[k.Joined]) + 1 + len(args[k.Joined+1])
	}
	k.Each(args, func(key []byte) { bytes = max(bytes, len(key)) })
	return bytes
}

// Each calls visit with the keys among args.
func (k KeySpec) Each(args [][]byte, visit func(key []byte)) {
	if k.Counted > 0 {
		for rest := k.counted(args); len(rest) > 0; rest = rest[1+k.With:] {
			visit(rest[0])
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

// counted returns the keys behind their number, and what belongs to them. There are none unless all are there.
func (k KeySpec) counted(args [][]byte) [][]byte {
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

const variableFlags = "variable_flags" // which Redis shows of a command with a ReadBy

// FlagsOf are the flags of a call's keys.
func (k KeySpec) FlagsOf(args [][]byte) []string {
	if k.ReadBy == "" {
		return k.Flags
	}
	for i := k.First + 2; i < len(args); i++ { // behind what is written
		if glob.Fold(args[i]) == k.ReadBy {
			return []string{"RW", "access", "update"}
		}
	}
	return []string{"OW", "update"}
}

// Access says which permissions a call's keys take: some commands take none but that the key is the user's at all.
func (k KeySpec) Access(args [][]byte) (a acl.Access) {
	for _, f := range k.FlagsOf(args) {
		switch f {
		case "access":
			a |= acl.Read
		case "update", "insert", "delete":
			a |= acl.Write
		}
	}
	return a
}

// Check says whether a user's rules allow a call, and else the command or key that they do not allow. It is a refund if
// only that is denied that the call returns units: then the object is what the user lacks to DEL the key.
func (c *Command) Check(user *acl.User, args [][]byte) (reason acl.Reason, object string, refund bool) {
	reason, object = c.check(user, args)
	if reason == acl.Allowed && c.del != nil && c.refunds(args) {
		reason, object = c.del.check(user, c.deletion(args))
		refund = reason != acl.Allowed
	}
	return reason, object, refund
}

// deletion is DEL of a call's keys.
func (c *Command) deletion(args [][]byte) [][]byte {
	if c.Keys.Joined == 0 {
		return args[c.Keys.First-1 : c.Keys.Last+1]
	}
	del := args[:1:1]
	c.Keys.Each(args, func(key []byte) { del = append(del, key) })
	return del
}

// refunds reports whether a call returns units, in the grammar of its quantity. An invalid one fails later.
func (c *Command) refunds(args [][]byte) bool {
	if len(args) <= c.QuantityAt || !bytes.HasPrefix(args[c.QuantityAt], []byte("-")) {
		return false
	}
	quantity, err := strconv.ParseInt(string(args[c.QuantityAt]), 10, 64)
	return err == nil && quantity < 0
}

func (c *Command) check(user *acl.User, args [][]byte) (reason acl.Reason, object string) {
	var room [8]acl.Key // enough for most, without an allocation
	keys := room[:0]
	if len(args) > len(room) {
		keys = make([]acl.Key, 0, len(args))
	}
	access := c.Keys.Access(args)
	c.Keys.Each(args, func(name []byte) { keys = append(keys, acl.Key{Name: name, Access: access}) })
	var first []byte
	if len(args) > 1 {
		first = args[1]
	}
	reason, denied := user.Check(c.ID, first, keys)
	switch reason {
	case acl.DeniedCommand:
		return reason, c.FullName()
	case acl.DeniedKey:
		return reason, string(keys[denied].Name)
	default:
		return reason, ""
	}
}
