package throttle

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/glob"
)

// limitSet is CL.LIMIT SET name rule [rule ...] [SHADOW] [SAMERULES], or SET name max_burst count period ...
// with the same options.
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
		k.Log.Info("limit set by CL.LIMIT SET", "limit", d.Name, "rules", strings.Join(d.Words(k.Reading), " "), "shadow", d.Shadow, "client", addr)
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
	keys, patterns := limit.NumOverrides()
	w.Map(4 + 6 + 4 + 2)
	w.Pair("name", limit.Name)
	w.BulkString("windows")
	k.replyWindows(w, limit)
	w.BulkString("shadow")
	w.Bool(limit.Shadow)
	w.Pair("source", limit.Source.String())
	counts := limit.Counts()
	replyCounts(w, &counts)
	replyNumber(w, "overridden", counts.Overridden)
	w.BulkString("near_share")
	w.Double(limit.Near)
	w.BulkString("rules")
	w.Array(len(limit.Rules))
	for i := range limit.Rules {
		w.Map(1 + 5)
		w.Pair("rule", k.ruleText(&limit.Rules[i]))
		of := limit.RuleCounts(i)
		replyCounts(w, &of)
	}
	replyNumber(w, "override_keys", uint64(keys))
	replyNumber(w, "override_patterns", uint64(patterns))
	w.Pair("policy", strings.Join(limit.Words(k.Reading), " "))
	replyNumber(w, "file_overrides", uint64(limit.NumFileOverrides()))
	return nil
}

// replyWindows replies the rules as max_burst, count and period if all are funnels without a name.
func (k handlers) replyWindows(w *resp.Writer, limit *namedlimit.Limit) {
	isOther := func(r namedlimit.Rule) bool { return r.Algorithm != namedlimit.Funnel || r.Name != "" }
	if slices.ContainsFunc(limit.Rules, isOther) {
		w.Array(0)
		return
	}
	w.Array(len(limit.Rules))
	for _, r := range limit.Rules {
		w.Array(3)
		w.Int(r.MaxBurst(k.Reading))
		w.Int(r.Count)
		w.Int(r.PeriodSec)
	}
}

// ruleText returns a rule as a command takes it, after its name if it has one.
func (k handlers) ruleText(r *namedlimit.Rule) string {
	text := strings.Join(r.Words(k.Reading), " ")
	if r.Name != "" {
		return r.Name + ": " + text
	}
	return text
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
	all := k.NamedLimits.All()
	names := make([]string, len(all))
	for i, limit := range all {
		names[i] = limit.Name
	}
	c.Reply().Strings(names)
	return nil
}
