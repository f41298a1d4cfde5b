package keys

import (
	"math"
	"strconv"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// A funnel's value is what redis-cell stores in Redis: its TAT in decimal. The expiry follows from it, so
// options of expiry are checked as in Redis and have no effect. Keys of other limiters have no value, and SET
// replaces them.

const errNotTAT reply.Error = "ERR " + catalog.RefuseValue + ". A value can only be a key's TAT, as redis-cell stores it: " +
	"in decimal Unix nanoseconds, after now and at most 2^62 ns ahead of it"

func valueOf(tatNs int64) string { return strconv.FormatInt(tatNs, 10) }

func tatOf(value []byte, nowNs int64) (tatNs int64, err error) {
	tatNs, ok := resp.ParseInt(value)
	if !ok || tatNs <= nowNs || tatNs-nowNs > funnel.MaxToleranceNs {
		return 0, errNotTAT
	}
	return tatNs, nil
}

func get(c execute.Call, args [][]byte) error {
	tatNs, ok, err := c.TAT(args[1])
	if err == nil {
		replyValue(c, tatNs, ok)
	}
	return err
}

func replyValue(c execute.Call, tatNs int64, ok bool) {
	if ok {
		c.Reply().BulkString(valueOf(tatNs))
	} else {
		c.Reply().Null()
	}
}

// set is SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds |
// KEEPTTL].
func set(c execute.Call, args [][]byte) error {
	o, err := readSetOptions(args[3:])
	if err == nil {
		err = o.checkExpiry(args[0], c.Now())
	}
	if err != nil {
		return err
	}
	tatNs, err := tatOf(args[2], c.Now())
	if err != nil {
		return err
	}
	if o.get { // before a key of another type is overwritten
		if _, _, err := c.TAT(args[1]); err != nil {
			return err
		}
	}
	before, found, err := c.SetState(args[1], limiter.State{ExpiresNs: tatNs}, o.when)
	if err != nil {
		return err
	}
	switch {
	case o.get:
		return replyBefore(c, &before, found)
	case o.when.Holds(found):
		c.Reply().OK()
	default:
		c.Reply().Null()
	}
	return nil
}

// replyBefore replies as GET would have before SET.
func replyBefore(c execute.Call, s *limiter.State, found bool) error {
	tatNs, err := s.TAT(c.Now())
	if err != nil { // another client made it meanwhile
		return reply.ErrWrongType
	}
	replyValue(c, tatNs, found)
	return nil
}

type setOptions struct {
	when   store.Condition
	get    bool
	expiry string // the option in lower case; "" for none
	time   []byte // of EX, PX, EXAT and PXAT
}

func readSetOptions(args [][]byte) (o setOptions, err error) {
	for i := 0; i < len(args); i++ {
		switch name := glob.Fold(args[i]); name {
		case "nx":
			o.when, err = condition(o.when, store.IfAbsent)
		case "xx":
			o.when, err = condition(o.when, store.IfFound)
		case "get":
			o.get = true
		case "ex", "px", "exat", "pxat", "keepttl":
			if o.expiry != "" && o.expiry != name {
				return o, reply.ErrSyntax
			}
			if o.expiry = name; name == "keepttl" {
				continue
			}
			if i++; i == len(args) {
				return o, reply.ErrSyntax
			}
			o.time = args[i]
		default:
			return o, reply.ErrSyntax
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

func condition(have, wanted store.Condition) (store.Condition, error) {
	if have != store.Always && have != wanted {
		return have, reply.ErrSyntax
	}
	return wanted, nil
}

// checkExpiry refuses the times that Redis refuses.
func (o setOptions) checkExpiry(name []byte, nowNs int64) error {
	if o.time == nil {
		return nil
	}
	n, err := argument.Int(o.time)
	if err != nil {
		return err
	}
	unit, begin := time.Millisecond, int64(0)
	if o.expiry == "ex" || o.expiry == "exat" {
		unit = time.Second
	}
	if o.expiry == "ex" || o.expiry == "px" {
		begin = cutMs(nowNs)
	}
	if unitMs := unit.Milliseconds(); n <= 0 || n > math.MaxInt64/unitMs || n*unitMs > math.MaxInt64-begin {
		return invalidExpireTime(name)
	}
	return nil
}
