package keys

import (
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/value"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// increxFloat is INCREX BYFLOAT; integers are batched.
func (k handlers) increxFloat(c execute.Call, args [][]byte) error {
	by, err := argument.IncrexFloat(args)
	if err != nil {
		return err
	}
	step := incrementFloat{by: &by, most: k.MaxValueBytes}
	if err := c.ChangeValue(args[1], &step); err != nil {
		return err
	}
	w := c.Reply()
	w.Array(2)
	w.DoubleText(step.text)
	w.DoubleText(step.applied.AppendTo(nil))
	return nil
}

// incrementFloat is the Step of INCREX BYFLOAT.
type incrementFloat struct {
	limiter.Base
	by      *argument.FloatIncrement
	most    int    // bytes of a value
	text    []byte // of the value
	applied value.Float
}

func (f *incrementFloat) Do(s *limiter.State, nowNs int64) (changed bool, err error) {
	live, err := f.by.Begin(s, nowNs)
	if err != nil {
		return false, err
	}
	var old value.Float
	if live {
		var ok bool
		if old, ok = value.FloatOf(s.Payload); !ok {
			return false, value.ErrNotFloat
		}
	}
	if old.IsInf() {
		return false, value.ErrInfinite
	}
	sum, added := old, f.by.When.Holds(live)
	if f.applied = (value.Float{}); added {
		sum, f.applied, added, err = value.BoundedFloat(&old, &f.by.By, &f.by.LeastFloat, &f.by.MostFloat, f.by.Saturates)
	}
	if err != nil {
		return false, err
	}
	f.text = sum.AppendTo(nil)
	switch {
	case !added:
		return false, nil
	case len(f.text) > f.most:
		return false, reply.TooLong("value is", f.most, "--max-value-bytes")
	}
	return f.by.End(s, live, nowNs, value.AppendText(nil, f.text)), nil
}

func (f *incrementFloat) MakesKey() bool { return f.by.When != limiter.IfFound }

func (f *incrementFloat) Traits() limiter.Traits {
	return limiter.Traits{Kind: limiter.Value, KeepsPayload: true}
}

func (f *incrementFloat) Copy() (c store.Step, take func()) {
	as := *f
	return &as, func() { *f = as }
}
