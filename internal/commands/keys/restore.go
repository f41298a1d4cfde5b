package keys

import (
	"math"

	"cellserver/internal/argument"
	"cellserver/internal/glob"
	"cellserver/internal/reply"
	"cellserver/internal/session"
	"cellserver/internal/store"
)

const errBusyKey reply.Error = "BUSYKEY Target key name already exists."

// dump is DUMP key.
func (k codec) dump(c session.Call, args [][]byte) error {
	tatNs, ok, err := c.TAT(args[1])
	switch {
	case err != nil:
		return err
	case ok:
		c.Reply().Bulk(k.append(nil, valueOf(tatNs)))
	default:
		c.Reply().Null()
	}
	return nil
}

// restore is RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]. What is checked comes in the order
// of Redis.
func (k codec) restore(c session.Call, args [][]byte) error {
	when, err := readRestoreOptions(args[4:])
	if err != nil {
		return err
	}
	switch _, found, err := c.TAT(args[1]); {
	case err != nil:
		return err
	case !when.Holds(found):
		return errBusyKey
	}
	if ttl, err := argument.Int(args[2]); err != nil {
		return err
	} else if ttl < 0 {
		return reply.Error("ERR Invalid TTL value, must be >= 0")
	}
	value, err := k.read(args[3])
	if err != nil {
		return err
	}
	tatNs, err := tatOf(value, c.Now())
	if err != nil {
		return err
	}
	switch _, found, err := c.SetTAT(args[1], tatNs, when); {
	case err != nil:
		return err
	case !when.Holds(found): // another client has made it meanwhile
		return errBusyKey
	}
	c.Reply().OK()
	return nil
}

func readRestoreOptions(args [][]byte) (when store.Condition, err error) {
	when = store.IfAbsent
	given := ""
	for i := 0; i < len(args); i++ {
		switch name := glob.Fold(args[i]); {
		case name == "replace":
			when = store.Always
		case name == "absttl":
		case (name == "idletime" || name == "freq") && i+1 < len(args) && (given == "" || given == name):
			given = name
			i++
			if err := checkUse(name, args[i]); err != nil {
				return when, err
			}
		default:
			return when, reply.ErrSyntax
		}
	}
	return when, nil
}

// checkUse checks how long ago, or how often, a key was last used.
func checkUse(option string, arg []byte) error {
	n, err := argument.Int(arg)
	switch {
	case err != nil:
		return err
	case option == "idletime" && n < 0:
		return reply.Error("ERR Invalid IDLETIME value, must be >= 0")
	case option == "freq" && (n < 0 || n > math.MaxUint8):
		return reply.Error("ERR Invalid FREQ value, must be >= 0 and <= 255")
	}
	return nil
}
