package keys

import (
	"errors"
	"math"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
	"cellserver/internal/store/rdb"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

const (
	errBusyKey  reply.Error = "BUSYKEY Target key name already exists."
	errChecksum reply.Error = "ERR DUMP payload version or checksum are wrong"
	errFormat   reply.Error = "ERR Bad data format"
	errType     reply.Error = "ERR Bad data format: cellserver keeps strings and limiters, and the payload is of another type, such as a hash; see " +
		"cellserver's " + catalog.Recipes
	errNoFunnel reply.Error = "ERR the value in the payload is not the TAT of a funnel: in decimal Unix nanoseconds, after now and at most 2^62 ns ahead of it"
	errDamaged  reply.Error = "ERR the state in the payload is not one that DUMP has returned, or of a later version of this server"
	errExpired  reply.Error = "ERR the state in the payload has expired, or would in more than 2^62 ns: check the clocks of both servers"
)

type codec struct {
	rdb.Codec
	mostBytes int // of a value
}

func (k codec) dump(c execute.Call, args [][]byte) error {
	s, ok, err := c.State(args[1])
	switch {
	case err != nil:
		return err
	case ok:
		c.Reply().Bulk(k.Append(nil, &s))
	default:
		c.Reply().Null()
	}
	return nil
}

// restore is RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency] [FUNNEL], with
// Redis's order of checks. FUNNEL reads a decimal as the TAT of a funnel.
func (k codec) restore(c execute.Call, args [][]byte) error {
	o, err := readRestoreOptions(args[4:])
	if err != nil {
		return err
	}
	switch _, found, err := c.Entry(args[1]); {
	case err != nil:
		return err
	case !o.when.Holds(found):
		return errBusyKey
	}
	ttlMs, err := argument.Int(args[2])
	if err != nil {
		return err
	} else if ttlMs < 0 {
		return reply.Error("ERR Invalid TTL value, must be >= 0")
	}
	s, err := k.stateOf(c, args[3], o.funnel || !c.KeepsValues())
	if err != nil {
		return err
	}
	if s.Kind.Row().Endless {
		s.ExpiresNs = o.expiresNs(ttlMs, c.Now())
	}
	w := store.Setting{To: s, When: o.when}
	switch err := c.Set(args[1], &w); {
	case err != nil:
		return err
	case !w.Held: // another client has made it meanwhile
		return errBusyKey
	}
	return c.OK()
}

// stateOf returns the state in a payload. A limiter's expiry must lie ahead, at most MaxToleranceNs; that of
// a value and of a bucket is not in the payload.
func (k codec) stateOf(c execute.Call, payload []byte, decimalIsFunnel bool) (s limiter.State, err error) {
	nowNs := c.Now()
	if decimalIsFunnel {
		s, err = k.ReadFunnel(payload)
	} else {
		s, err = k.Read(payload)
	}
	switch {
	case errors.Is(err, rdb.ErrChecksum):
		return s, errChecksum
	case errors.Is(err, rdb.ErrFormat):
		return s, errFormat
	case errors.Is(err, rdb.ErrDamaged):
		return s, errDamaged
	case !c.KeepsValues() && (err != nil || s.Kind == limiter.Value):
		return s, errNotTAT
	case err != nil && decimalIsFunnel:
		return s, errNoFunnel
	case err != nil:
		return s, errType
	case s.Kind == limiter.Value && value.TextBytes(s.Payload) > k.mostBytes:
		return s, reply.TooLong("value is", k.mostBytes, "--max-value-bytes")
	case s.Kind.Row().Endless || s.ExpiresNs > nowNs && s.ExpiresNs-nowNs <= funnel.MaxToleranceNs:
		return s, nil
	case s.Kind == limiter.Funnel && !c.KeepsValues():
		return s, errNotTAT
	case s.Kind == limiter.Funnel && decimalIsFunnel:
		return s, errNoFunnel
	}
	return s, errExpired
}

type restoreOptions struct {
	when     store.Condition
	absolute bool
	funnel   bool
}

// expiresNs returns the expiry by the ttl, for states without their own.
func (o restoreOptions) expiresNs(ttlMs, nowNs int64) int64 {
	switch {
	case ttlMs == 0:
		return limiter.NeverNs
	case o.absolute:
		return nsOf(ttlMs)
	case ttlMs > math.MaxInt64-cutMs(nowNs):
		return latestNs
	}
	return nsOf(cutMs(nowNs) + ttlMs)
}

func readRestoreOptions(args [][]byte) (o restoreOptions, err error) {
	o.when = store.IfAbsent
	given := ""
	for i := 0; i < len(args); i++ {
		switch name := glob.Fold(args[i]); {
		case name == "replace":
			o.when = store.Always
		case name == "absttl":
			o.absolute = true
		case name == "funnel":
			o.funnel = true
		case (name == "idletime" || name == "freq") && i+1 < len(args) && (given == "" || given == name):
			given = name
			i++
			if err := checkUse(name, args[i]); err != nil {
				return o, err
			}
		default:
			return o, reply.ErrSyntax
		}
	}
	return o, nil
}

// checkUse checks IDLETIME and FREQ, which have no effect.
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
