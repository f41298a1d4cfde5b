package throttle

import (
	"context"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
)

// limitSet is CL.LIMIT SET name max_burst count period [max_burst count period ...] [SHADOW].
func (k handlers) limitSet(c execute.Call, conn execute.Connection, args [][]byte) error {
	d, err := argument.Definition(args, k.Reading)
	if err != nil {
		return err
	}
	addr := conn.Client().Addr()
	return k.change(c, func() error {
		if err := k.NamedLimits.Set(d); err != nil {
			return err
		}
		k.Log.Info("limit set by CL.LIMIT SET", "limit", d.Name, "windows", len(d.Windows), "shadow", d.Shadow, "client", addr)
		return nil
	}, func(c execute.Call) { c.Reply().OK() })
}

// limitDel is CL.LIMIT DEL name.
func (k handlers) limitDel(c execute.Call, conn execute.Connection, args [][]byte) error {
	name, addr := string(args[2]), conn.Client().Addr()
	found := false
	return k.change(c, func() (err error) {
		if found, err = k.NamedLimits.Delete(name); found && err == nil {
			k.Log.Info("limit deleted by CL.LIMIT DEL", "limit", name, "client", addr)
		}
		return err
	}, func(c execute.Call) {
		n := int64(0)
		if found {
			n = 1
		}
		c.Reply().Int(n)
	})
}

func (k handlers) limitReload(c execute.Call, _ [][]byte) error {
	return k.change(c, k.NamedLimits.Reload, func(c execute.Call) { c.Reply().OK() })
}

// change runs do, which may wait for a disk, in the background, and then replies. A transaction runs it in
// place: it is in the background already, and holds no keys then.
func (k handlers) change(c execute.Call, do func() error, done func(c execute.Call)) error {
	var failure error
	behind := func(c execute.Call) error {
		if failure != nil {
			return reply.Error("ERR " + resp.PrintableN([]byte(failure.Error()), maxReasonBytes))
		}
		done(c)
		return nil
	}
	if c.HoldsKeys() {
		failure = do()
		return behind(c)
	}
	return c.Until(func(_ context.Context, finish func()) {
		go func() {
			defer finish()
			failure = do()
		}()
	}, 0, behind)
}

// maxReasonBytes fits the errors of several lines of a file.
const maxReasonBytes = 1024

func (k handlers) limitGet(c execute.Call, args [][]byte) error {
	w, limit := c.Reply(), k.NamedLimits.Lookup(args[2])
	if limit == nil {
		w.Null()
		return nil
	}
	w.Map(7)
	w.Pair("name", limit.Name)
	w.BulkString("windows")
	w.Array(len(limit.Windows))
	for _, window := range limit.Windows {
		w.Array(3)
		w.Int(window.MaxBurst(k.Reading))
		w.Int(window.Count)
		w.Int(window.PeriodSec)
	}
	w.BulkString("shadow")
	w.Bool(limit.Shadow)
	w.Pair("source", limit.Source.String())
	counts := limit.Counts()
	for _, count := range []struct {
		name string
		n    uint64
	}{{"allowed", counts.Allowed}, {"limited", counts.Limited}, {"shadow_limited", counts.ShadowLimited}} {
		w.BulkString(count.name)
		w.Int(int64(count.n))
	}
	return nil
}

func (k handlers) limitList(c execute.Call, _ [][]byte) error {
	all := k.NamedLimits.All()
	names := make([]string, len(all))
	for i, limit := range all {
		names[i] = limit.Name
	}
	c.Reply().Strings(names)
	return nil
}
