package throttle

import (
	"context"
	"errors"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// limitSet is CL.LIMIT SET name rule [rule ...] [UNIT usd] [MAXRESERVATION share] [SHADOW] [SAMERULES], or
// SET name max_burst count period ... with the same options.
func (k handlers) limitSet(c execute.Call, conn execute.Connection, args [][]byte) error {
	set, last := k.NamedLimits.Set, len(args)-1
	if glob.IsFolded(args[last], "samerules") {
		set, args = k.NamedLimits.SetShadow, args[:last]
	}
	d, err := argument.Definition(args, k.Reading)
	if err != nil {
		return err
	}
	addr := conn.Client().Addr()
	return k.change(c, func() error {
		if err := set(d); err != nil {
			return err
		}
		rules := strings.Join(append(d.Words(k.Reading), d.OptionWords()...), " ")
		k.Log.Info("limit set by CL.LIMIT SET", "limit", d.Name, "rules", rules, "shadow", d.Shadow, "client", addr)
		return nil
	}, func(c execute.Call) { c.Reply().OK() })
}

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

func (k handlers) limitReload(c execute.Call, conn execute.Connection, _ [][]byte) error {
	addr := conn.Client().Addr()
	return k.change(c, func() error { return k.NamedLimits.Reload("client", addr) }, func(c execute.Call) { c.Reply().OK() })
}

// change runs do, which may wait for a disk, in the background, and then replies. A transaction runs it in
// place: it is in the background already, and holds no keys then.
func (k handlers) change(c execute.Call, do func() error, done func(c execute.Call)) error {
	var failure error
	behind := func(c execute.Call) error {
		if errors.Is(failure, store.ErrFrozen) {
			return reply.StoreFailed(failure)
		}
		if failure != nil {
			return reply.Error("ERR " + resp.PrintableN([]byte(failure.Error()), maxReasonBytes))
		}
		done(c)
		return nil
	}
	if c.HoldsKeys() {
		failure = do()
		c.RenewLimits()
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
const maxReasonBytes = 4096

func (k handlers) limitGet(c execute.Call, args [][]byte) error {
	w, limit := c.Reply(), c.Limits().Lookup(args[2])
	if limit == nil {
		w.Null()
		return nil
	}
	d := limit.Describe(k.Reading)
	w.Map(4 + 6 + 4 + 2 + 3 + 2)
	w.Pair("name", d.Name)
	w.BulkString("windows")
	w.Array(len(d.Windows))
	for _, numbers := range d.Windows {
		w.Array(len(numbers))
		for _, n := range numbers {
			w.Int(n)
		}
	}
	w.BulkString("shadow")
	w.Bool(d.Shadow)
	w.Pair("source", d.Source)
	replyCounts(w, &d.Counts)
	replyNumber(w, "overridden", d.Overridden)
	w.BulkString("near_share")
	w.Double(d.Near)
	w.BulkString("rules")
	w.Array(len(d.Rules))
	for i := range d.Rules {
		w.Map(1 + 5)
		w.Pair("rule", d.Rules[i].Rule)
		replyCounts(w, &d.Rules[i].Counts)
	}
	replyNumber(w, "override_keys", uint64(d.OverrideKeys))
	replyNumber(w, "override_patterns", uint64(d.OverridePatterns))
	w.Pair("policy", d.Policy)
	replyNumber(w, "file_overrides", uint64(d.FileOverrides))
	replyNumber(w, "holds", d.Held)
	replyNumber(w, "holds_settled", d.Settled)
	replyNumber(w, "holds_settled_late", d.Late)
	replyOptions(w, &d)
	return nil
}

// replyOptions replies null for an option that the limit has not.
func replyOptions(w *resp.Writer, d *namedlimit.Description) {
	w.BulkString("unit")
	if d.Unit == "" {
		w.Null()
	} else {
		w.BulkString(d.Unit)
	}
	w.BulkString("max_reservation")
	if d.MaxReservation == 0 {
		w.Null()
	} else {
		w.Double(d.MaxReservation)
	}
}

func replyCounts(w *resp.Writer, c *namedlimit.Counts) {
	replyNumber(w, "allowed", c.Allowed)
	replyNumber(w, "limited", c.Limited)
	replyNumber(w, "shadow_limited", c.ShadowLimited)
	replyNumber(w, "near", c.Near)
	replyNumber(w, "charged_beyond", c.Over)
}

func replyNumber(w *resp.Writer, name string, n uint64) {
	w.BulkString(name)
	w.Int(int64(n))
}

func (k handlers) limitList(c execute.Call, _ [][]byte) error {
	all := c.Limits().All()
	names := make([]string, len(all))
	for i, limit := range all {
		names[i] = limit.Name
	}
	c.Reply().Strings(names)
	return nil
}
