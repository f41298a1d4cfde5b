package throttle

import (
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
)

// holdTogether is CL.MRESERVE n name key units [name key units ...] TTL time [CHARGE] [ID id].
func holdTogether(c execute.Call, args [][]byte) error {
	h, id, err := argument.Holding(c.Limits(), c.DB(), args)
	if err != nil {
		return err
	}
	if err := c.Reserve(h); err != nil {
		return err
	}
	w := c.Reply()
	w.Array(2 + len(h.Batch))
	w.Int(execute.LimitedInt(h.Limited))
	for i := range h.Batch {
		execute.Result(w, &h.Batch[i].Result)
	}
	if h.Limited {
		w.Null()
	} else {
		w.Bulk(id)
	}
	return nil
}

// settleTogether is CL.MCOMMIT id n name key units [name key units ...].
func settleTogether(c execute.Call, args [][]byte) error {
	s, unknown, err := argument.Settling(c.Limits(), c.DB(), args)
	if err != nil {
		return err
	}
	if err := c.Settle(s); err != nil {
		return err
	}
	if s.State == limiter.NoHold && unknown != nil {
		return unknown
	}
	c.Reply().Int(int64(s.State)) // 1 of an open hold, 2 of an overdue one
	return nil
}

// extendTogether is CL.MEXTEND id time n name key [name key ...].
func extendTogether(c execute.Call, args [][]byte) error {
	e, unknown, err := argument.Extending(c.Limits(), c.DB(), args)
	if err != nil {
		return err
	}
	if err := c.Extend(e); err != nil {
		return err
	}
	if !e.Open && unknown != nil {
		return unknown
	}
	c.Reply().Int(execute.LimitedInt(e.Open))
	return nil
}
