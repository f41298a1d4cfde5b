package keys

import (
	"math"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// A funnel's value is what redis-cell stores in Redis: its TAT in decimal. Keys of other limiters have no
// value. A store on other machines has no values, so that SET sets TATs only.

const errNotTAT reply.Error = "ERR " + catalog.RefuseValue + ". A value can only be a key's TAT, as redis-cell stores it: " +
	"in decimal Unix nanoseconds, after now and at most 2^62 ns ahead of it"

// set is SET key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds |
// PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL].
func (k handlers) set(c execute.Call, args [][]byte) error {
	o, err := readSetOptions(args[3:])
	if err != nil || o.expiry == "persist" {
		return reply.ErrSyntax
	}
	atNs, err := o.endNs(args[0], c.Now())
	if err != nil {
		return err
	}
	s, err := k.setting(c, args[2])
	if err != nil {
		return err
	}
	s.When, s.If = o.when, o.comparison
	if o.comparison != nil && o.comparison.By.NeedsValue() {
		s.When = store.IfFound
	}
	if s.To.Kind == limiter.Value { // a funnel expires by its TAT
		s.To.ExpiresNs, s.KeepExpiry = atNs, o.expiry == "keepttl"
	}
	if o.get {
		return setReading(c, args[1], s)
	}
	if err := c.Set(args[1], s); err != nil {
		return err
	}
	if !s.Held {
		c.Reply().Null()
		return nil
	}
	return c.OK()
}

// setReading applies a Setting to a key that GET can read, and replies as GET would have before.
func setReading(c execute.Call, name []byte, s *store.Setting) error {
	s.Reads = true
	if err := c.Change(name, reading{s}); err != nil {
		return err
	}
	return execute.ReplyString(c.Reply(), &s.Before, s.Found, c.Now())
}

// reading is a Setting that leaves keys that GET cannot read.
type reading struct{ *store.Setting }

func (r reading) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	return r.DoBehind(s, nowNs, 0)
}

// DoBehind implements limiter.Timed.
func (r reading) DoBehind(s *limiter.State, nowNs, byNs int64) (changed bool, err error) {
	if s.ExpiresNs > nowNs && s.Kind != limiter.Value && !limiter.IsFunnel(s) {
		return false, limiter.ErrWrongType
	}
	return r.Setting.DoBehind(s, nowNs, byNs)
}

func (r reading) Copy() (c store.Step, take func()) {
	c, take = r.Setting.Copy()
	return reading{c.(*store.Setting)}, take
}

// setting returns the Setting of a value that never expires; over a store without values, of a funnel.
func (k handlers) setting(c execute.Call, text []byte) (*store.Setting, error) {
	if !c.KeepsValues() {
		tatNs, ok := resp.ParseInt(text)
		if !ok || !limiter.IsTAT(tatNs, c.Now()) {
			return nil, errNotTAT
		}
		return &store.Setting{To: limiter.State{ExpiresNs: tatNs}}, nil
	}
	if len(text) > k.MaxValueBytes {
		return nil, reply.TooLong("value is", k.MaxValueBytes, "--max-value-bytes")
	}
	return &store.Setting{To: limiter.ValueOf(text, limiter.NeverNs), SetsTAT: true}, nil
}

func (k handlers) setNX(c execute.Call, args [][]byte) error {
	s, err := k.setting(c, args[2])
	if err != nil {
		return err
	}
	s.When = store.IfAbsent
	if err := c.Set(args[1], s); err != nil {
		return err
	}
	c.Reply().Int(execute.LimitedInt(s.Held))
	return nil
}

// setEX is SETEX key seconds value, and PSETEX with milliseconds.
func (k handlers) setEX(expiry string) func(c execute.Call, args [][]byte) error {
	return func(c execute.Call, args [][]byte) error {
		s, err := k.setting(c, args[3])
		if err == nil {
			s.To.ExpiresNs, err = setOptions{expiry: expiry, time: args[2]}.expiresNs(args[0], c.Now())
		}
		if err == nil {
			err = c.Set(args[1], s)
		}
		if err != nil {
			return err
		}
		return c.OK()
	}
}

func (k handlers) getSet(c execute.Call, args [][]byte) error {
	s, err := k.setting(c, args[2])
	if err != nil {
		return err
	}
	return setReading(c, args[1], s)
}

func getDel(c execute.Call, args [][]byte) error {
	return setReading(c, args[1], &store.Setting{When: store.IfFound})
}

// getEx is GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST].
func getEx(c execute.Call, args [][]byte) error {
	o, err := readSetOptions(args[2:])
	if err != nil || o.get || o.when != store.Always || o.comparison != nil || o.expiry == "keepttl" {
		return reply.ErrSyntax
	}
	step := retime{}
	switch {
	case o.time != nil:
		step.atNs, step.err = o.expiresNs(args[0], c.Now())
	case o.expiry == "persist":
		step.atNs = limiter.NeverNs
	}
	if err := c.ChangeValue(args[1], &step); err != nil {
		return err
	}
	return execute.ReplyString(c.Reply(), &step.before, step.found, c.Now())
}

// retime is GETEX's Step.
type retime struct {
	limiter.Base
	atNs   int64 // 0 for no change
	err    error // of the time; those of the key come first
	before limiter.State
	found  bool
}

func (r *retime) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	r.found = s.ExpiresNs > nowNs
	switch {
	case !r.found:
		return false, nil
	case s.Kind != limiter.Value:
		return false, limiter.ErrWrongType
	case r.err != nil:
		return false, r.err
	}
	r.before = limiter.Shifted(*s, 0)
	changed = r.atNs != 0 && r.atNs != s.ExpiresNs
	if changed {
		s.ExpiresNs = max(r.atNs, nowNs)
	}
	return changed, nil
}

func (r *retime) MakesKey() bool { return false }

func (r *retime) Traits() limiter.Traits {
	return limiter.Traits{Kind: limiter.Value, KeepsPayload: true}
}

func (r *retime) Copy() (c store.Step, take func()) {
	as := *r
	return &as, func() { *r = as }
}

func (k handlers) incrByFloat(c execute.Call, args [][]byte) error {
	step := addFloat{most: k.MaxValueBytes}
	step.by, step.ok = value.ParseFloat(args[2])
	if err := c.ChangeValue(args[1], &step); err != nil {
		return err
	}
	c.Reply().Bulk(step.text)
	return nil
}

// addFloat is INCRBYFLOAT's Step.
type addFloat struct {
	limiter.Base
	by   value.Float
	ok   bool // else an error after those of the key
	most int  // bytes of a value
	text []byte
}

func (a *addFloat) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	expiresNs, old := s.ExpiresNs, value.Float{}
	if expiresNs <= nowNs {
		expiresNs = limiter.NeverNs
	} else if s.Kind != limiter.Value {
		return false, limiter.ErrWrongType
	} else if f, ok := value.FloatOf(s.Payload); ok {
		old = f
	} else {
		return false, value.ErrNotFloat
	}
	if !a.ok {
		return false, value.ErrNotFloat
	}
	if a.text, err = value.AddFloat(old, a.by); err != nil {
		return false, err
	}
	if len(a.text) > a.most {
		return false, reply.TooLong("value is", a.most, "--max-value-bytes")
	}
	*s = limiter.State{Kind: limiter.Value, ExpiresNs: expiresNs, Payload: value.AppendText(nil, a.text)}
	return true, nil
}

func (a *addFloat) Traits() limiter.Traits {
	return limiter.Traits{Kind: limiter.Value, KeepsPayload: true}
}

func (a *addFloat) Copy() (c store.Step, take func()) {
	as := *a
	return &as, func() { *a = as }
}

// strLen is STRLEN key, of values only.
func strLen(c execute.Call, args [][]byte) error {
	var n int
	kind := limiter.Value
	if err := c.See(args[1], func(s *limiter.State) {
		var digits [20]byte
		if kind = s.Kind; kind == limiter.Value {
			n = len(limiter.ValueText(digits[:0], s))
		}
	}); err != nil {
		return err
	}
	if kind != limiter.Value {
		return reply.ErrWrongType
	}
	c.Reply().Int(int64(n))
	return nil
}

type setOptions struct {
	when       store.Condition
	comparison *limiter.Comparison
	get        bool
	expiry     string // the option in lower case; "" for none
	time       []byte // of EX, PX, EXAT and PXAT
}

func readSetOptions(args [][]byte) (o setOptions, err error) {
	for i := 0; i < len(args); i++ {
		switch name := glob.Fold(args[i]); name {
		case "nx":
			o.when, err = condition(o.when, store.IfAbsent)
		case "xx":
			o.when, err = condition(o.when, store.IfFound)
		case "ifeq", "ifne", "ifdeq", "ifdne":
			by := relation(name)
			if i++; i == len(args) || o.comparison != nil && o.comparison.By != by {
				return o, reply.ErrSyntax
			}
			o.comparison = &limiter.Comparison{By: by, With: args[i]}
		case "get":
			o.get = true
		case "ex", "px", "exat", "pxat", "keepttl", "persist":
			if o.expiry != "" && o.expiry != name {
				return o, reply.ErrSyntax
			}
			if o.expiry = name; name == "keepttl" || name == "persist" {
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
	if o.comparison != nil && o.when != store.Always {
		return o, reply.ErrSyntax
	}
	return o, nil
}

func condition(have, wanted store.Condition) (store.Condition, error) {
	if have != store.Always && have != wanted {
		return have, reply.ErrSyntax
	}
	return wanted, nil
}

// endNs is expiresNs, or never without a time.
func (o setOptions) endNs(name []byte, nowNs int64) (int64, error) {
	if o.time == nil {
		return limiter.NeverNs, nil
	}
	return o.expiresNs(name, nowNs)
}

// expiresNs returns the expiry, a whole millisecond, or an error for the times that Redis refuses.
func (o setOptions) expiresNs(name []byte, nowNs int64) (int64, error) {
	n, err := argument.Int(o.time)
	if err != nil {
		return 0, err
	}
	unit, begin := time.Millisecond, int64(0)
	if o.expiry == "ex" || o.expiry == "exat" {
		unit = time.Second
	}
	if o.expiry == "ex" || o.expiry == "px" {
		begin = cutMs(nowNs)
	}
	if unitMs := unit.Milliseconds(); n <= 0 || n > math.MaxInt64/unitMs || n*unitMs > math.MaxInt64-begin {
		return 0, invalidExpireTime(name)
	}
	return nsOf(begin + n*unit.Milliseconds()), nil
}
