package argument

import (
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// ErrUnbatched is a Request's error for a call that the command's handler executes.
const ErrUnbatched reply.Error = "ERR the call is not batched"

// Options of INCREX by their letters, as folded returns them.
const (
	optionEX       = 'e'<<8 | 'x'
	optionPX       = 'p'<<8 | 'x'
	optionNX       = 'n'<<8 | 'x'
	optionXX       = 'x'<<8 | 'x'
	optionENX      = 'e'<<16 | optionNX
	optionEXAT     = optionEX<<16 | 'a'<<8 | 't'
	optionPXAT     = optionPX<<16 | 'a'<<8 | 't'
	optionBYINT    = 'b'<<32 | 'y'<<24 | 'i'<<16 | 'n'<<8 | 't'
	optionBOUND    = 'b'<<32 | 'o'<<24 | 'u'<<16 | 'n'<<8 | 'd'
	optionLBOUND   = 'l'<<40 | optionBOUND
	optionUBOUND   = 'u'<<40 | optionBOUND
	optionBYFLOAT  = 'b'<<48 | 'y'<<40 | 'f'<<32 | 'l'<<24 | 'o'<<16 | 'a'<<8 | 't'
	optionPERSIST  = 'p'<<48 | 'e'<<40 | 'r'<<32 | 's'<<24 | 'i'<<16 | 's'<<8 | 't'
	optionSATURATE = 's'<<56 | 'a'<<48 | 't'<<40 | 'u'<<32 | 'r'<<24 | 'a'<<16 | 't'<<8 | 'e'
)

// folded returns a word of at most eight letters in lower case, as a number, which is faster to compare.
func folded(word []byte) (n uint64) {
	if len(word) > 8 {
		return 0
	}
	for _, c := range word {
		n = n<<8 | uint64(c|0x20)
	}
	return n
}

// increment is INCREX's options, unread. A group that is given has its bit in seen.
type increment struct {
	seen                  uint8
	isFloat               bool
	isSeconds             bool
	by, least, most, time []byte
}

// Groups of options of which one may be given, once.
const (
	seenBy = 1 << iota
	seenLeast
	seenMost
	seenExpiry
	seenOnlyNever
	seenSaturate
	seenCondition
)

// scan reads the options' words into the receiver and to. It reports whether the syntax is right.
func (o *increment) scan(args [][]byte, to *limiter.Increment) bool {
	for i := 0; i < len(args); i++ {
		var group uint8
		var into *[]byte // of an option with a number
		switch folded(args[i]) {
		case optionBYINT:
			group, into = seenBy, &o.by
		case optionBYFLOAT:
			group, into, o.isFloat = seenBy, &o.by, true
		case optionLBOUND:
			group, into = seenLeast, &o.least
		case optionUBOUND:
			group, into = seenMost, &o.most
		case optionEX:
			group, into, to.Expiry, o.isSeconds = seenExpiry, &o.time, limiter.ExpireIn, true
		case optionPX:
			group, into, to.Expiry = seenExpiry, &o.time, limiter.ExpireIn
		case optionEXAT:
			group, into, to.Expiry, o.isSeconds = seenExpiry, &o.time, limiter.ExpireAt, true
		case optionPXAT:
			group, into, to.Expiry = seenExpiry, &o.time, limiter.ExpireAt
		case optionPERSIST:
			group, to.Expiry = seenExpiry, limiter.NeverExpire
		case optionENX:
			group, to.OnlyNever = seenOnlyNever, true
		case optionSATURATE:
			group, to.Saturates = seenSaturate, true
		case optionNX:
			group, to.When = seenCondition, limiter.IfAbsent
		case optionXX:
			group, to.When = seenCondition, limiter.IfFound
		default:
			return false
		}
		if o.seen&group != 0 || into != nil && i+1 == len(args) {
			return false
		}
		if o.seen |= group; into != nil {
			i++
			*into = args[i]
		}
	}
	return to.Expiry != limiter.NeverExpire || !to.OnlyNever
}

// has reports whether an option of a group is given.
func (o *increment) has(group uint8) bool { return o.seen&group != 0 }

// check refuses ENX without an expiry, after the syntax.
func (o *increment) check(to *limiter.Increment) error {
	if to.OnlyNever && !o.has(seenExpiry) {
		return reply.Error("ERR ENX flag requires an expiration")
	}
	return nil
}

// readTime reads the time of an expiry, after the other numbers.
func (o *increment) readTime(to *limiter.Increment) (err error) {
	if to.Expiry != limiter.ExpireIn && to.Expiry != limiter.ExpireAt {
		return nil
	}
	const msPerSecond = 1000
	if to.Ms, err = Int(o.time); err != nil {
		return err
	}
	if to.Ms <= 0 || o.isSeconds && to.Ms > math.MaxInt64/msPerSecond {
		return reply.InvalidExpireTime("increx")
	}
	if o.isSeconds {
		to.Ms *= msPerSecond
	}
	return nil
}

const errBounds reply.Error = "ERR LBOUND can't be greater than UBOUND"

// increx is the Request of INCREX by an integer.
func increx(q *store.Request, db uint16, args [][]byte, _ funnel.Reading, names *Names) error {
	var o increment
	to := names.increment()
	*to = limiter.Increment{Least: math.MinInt64, Most: math.MaxInt64}
	if !o.scan(args[2:], to) {
		return reply.ErrSyntax
	}
	if o.isFloat {
		return ErrUnbatched
	}
	if err := o.check(to); err != nil {
		return err
	}
	by, ok := int64(1), true
	if o.has(seenBy) {
		by, ok = resp.ParseInt(o.by)
	}
	if !ok {
		return reply.Error("ERR Increment is not an integer or out of range")
	}
	if o.has(seenLeast) {
		if to.Least, ok = resp.ParseInt(o.least); !ok {
			return reply.Error("ERR LBOUND is not an integer or out of range")
		}
	}
	if o.has(seenMost) {
		if to.Most, ok = resp.ParseInt(o.most); !ok {
			return reply.Error("ERR UBOUND is not an integer or out of range")
		}
	}
	if to.Least > to.Most {
		return errBounds
	}
	if err := o.readTime(to); err != nil {
		return err
	}
	q.Key.DB, q.Key.Name = db, args[1]
	q.Rule.Increment(by, to)
	return nil
}

// FloatIncrement is an INCREX BYFLOAT.
type FloatIncrement struct {
	limiter.Increment
	By, LeastFloat, MostFloat value.Float
}

// IncrexFloat reads INCREX BYFLOAT.
func IncrexFloat(args [][]byte) (to FloatIncrement, err error) {
	var o increment
	if !o.scan(args[2:], &to.Increment) {
		return to, reply.ErrSyntax
	}
	if err := o.check(&to.Increment); err != nil {
		return to, err
	}
	var ok bool
	to.LeastFloat, to.MostFloat = value.MostFloat(-1), value.MostFloat(1)
	if to.By, ok = value.ParseFloat(o.by); !ok {
		return to, reply.Error("ERR Increment is not a valid float")
	}
	if to.By.IsInf() {
		return to, reply.Error("ERR BYFLOAT increment cannot be Infinity")
	}
	if o.has(seenLeast) {
		if to.LeastFloat, ok = value.ParseFloat(o.least); !ok {
			return to, reply.Error("ERR LBOUND is not a valid float")
		}
	}
	if o.has(seenMost) {
		if to.MostFloat, ok = value.ParseFloat(o.most); !ok {
			return to, reply.Error("ERR UBOUND is not a valid float")
		}
	}
	if to.LeastFloat.Exceeds(&to.MostFloat) {
		return to, errBounds
	}
	return to, o.readTime(&to.Increment)
}
