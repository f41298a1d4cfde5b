package throttle

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
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

const maxChecks = 32 // pairs of a CL.MCHECK

// checkTogether is CL.MCHECK n name key [name key ...] [QUANTITY q] [EACH] [DEBIT | ATMOST].
func (k handlers) checkTogether(c execute.Call, args [][]byte) error {
	n, err := argument.Int(args[1]) // in the grammar of its row, by which its keys were checked
	switch {
	case err != nil:
		return err
	case n < 1 || n > maxChecks:
		return reply.Error("ERR n, the number of pairs, must be 1 to " + strconv.Itoa(maxChecks) + ", got " + strconv.FormatInt(n, 10))
	case int64(len(args)-2) < 2*n:
		return reply.ErrArity
	}
	pairs, options := args[2:2+2*n], args[2+2*n:]
	quantity, each, flags, err := checkOptions(options)
	if err != nil {
		return err
	}
	batch, limits := make([]store.Request, n), c.Limits()
	var joined []byte
	for i := range batch {
		if _, err := argument.Named(limits, &batch[i], c.DB(), pairs[2*i], pairs[2*i+1], quantity, flags, &joined); err != nil {
			return err
		}
	}
	return replyTogether(c, batch, !each && flags == 0)
}

// checkOptions reads the options of CL.MCHECK, in any order.
func checkOptions(options [][]byte) (quantity int64, each bool, flags limiter.Flags, err error) {
	quantity = 1
	counted := false
	for len(options) > 0 {
		used := 1
		switch option := options[0]; {
		case glob.IsFolded(option, "each") && !each:
			each = true
		case glob.IsFolded(option, "debit") && flags == 0:
			flags = limiter.Debit
		case glob.IsFolded(option, "atmost") && flags == 0:
			flags = limiter.AtMost
		case glob.IsFolded(option, "quantity") && len(options) > 1 && !counted:
			counted = true
			if quantity, err = argument.Number(options[1]); err != nil {
				return 0, false, 0, err
			}
			if quantity < 0 {
				return 0, false, 0, reply.Error("ERR quantity must be at least 0; CL.CHECK gives units back")
			}
			used = 2
		default:
			return 0, false, 0, reply.ErrSyntax
		}
		options = options[used:]
	}
	if flags == limiter.AtMost && !each {
		return 0, false, 0, reply.Error("ERR ATMOST needs EACH: without it all pairs are charged the quantity, or none")
	}
	return quantity, each, flags, nil
}

// limitOverride is CL.LIMIT OVERRIDE name key PLAN plan | rule ... | DENY | UNLIMITED | DEL [EX seconds].
func (k handlers) limitOverride(c execute.Call, conn execute.Connection, args [][]byte) error {
	o, err := argument.Override(args, k.Reading, k.NamedLimits.Now())
	if err != nil {
		return err
	}
	addr := conn.Client().Addr()
	found := false
	return k.change(c, func() (err error) {
		if found, err = k.NamedLimits.Override(o); err != nil {
			return err
		}
		log := k.Log.With("limit", o.Limit, "key", resp.PrintableN([]byte(o.Key), maxLoggedKey), "client", addr)
		switch {
		case !o.Removed:
			log.Info("override set by CL.LIMIT OVERRIDE", "policy", strings.Join(o.Policy.Words(k.Reading), " "))
		case found:
			log.Info("override ended by CL.LIMIT OVERRIDE")
		}
		return nil
	}, func(c execute.Call) {
		if !o.Removed {
			c.Reply().OK()
			return
		}
		c.Reply().Int(execute.LimitedInt(found))
	})
}

const maxLoggedKey = 128

// limitOverrides is CL.LIMIT OVERRIDES name [cursor] [FILE]. It leaves out keys to which the user has no
// right, and patterns that are no such keys.
func (k handlers) limitOverrides(c execute.Call, conn execute.Connection, args [][]byte) error {
	if _, err := argument.Limit(c.Limits(), args[2]); err != nil {
		return err
	}
	name, rest := string(args[2]), args[3:]
	ofFile := len(rest) > 0 && glob.IsFolded(rest[len(rest)-1], "file")
	if ofFile {
		rest = rest[:len(rest)-1]
	}
	cursor := uint64(0)
	if len(rest) > 0 {
		var err error
		if cursor, err = strconv.ParseUint(string(rest[0]), 10, 64); err != nil || len(rest) > 1 {
			return reply.Error("ERR invalid cursor")
		}
	}
	mayRead := func(key string) bool { return conn.MayRead(catalog.AppendJoined(nil, []byte(name), []byte(key))) }
	if ofFile {
		return replyOverrides(c, func() (uint64, []namedlimit.Override, error) { return k.NamedLimits.FileOverrides(name, cursor) },
			func(o *namedlimit.Override) bool {
				_, of := selector(o)
				return mayRead(of)
			}, k.writeFileOverride)
	}
	var nowNs int64
	return replyOverrides(c, func() (next uint64, some []namedlimit.KeyOverride, _ error) {
		next, some = k.NamedLimits.Overrides(name, cursor) // may wait
		nowNs = k.NamedLimits.Now()
		return next, some, nil
	}, func(o *namedlimit.KeyOverride) bool { return mayRead(o.Key) }, func(w *resp.Writer, o *namedlimit.KeyOverride) {
		w.Array(3)
		w.BulkString(o.Key)
		w.BulkString(strings.Join(o.Policy.Words(k.Reading), " "))
		if o.UntilNs == 0 {
			w.Int(-1)
		} else {
			w.Int(funnel.WholeSeconds.Of(funnel.Since(nowNs, o.UntilNs)))
		}
	})
}

// replyOverrides replies what is gathered and may be read. It gathers in the background, as changes that wait
// for the disk hold the registry's lock.
func replyOverrides[T any](
	c execute.Call, gather func() (next uint64, some []T, err error), mayRead func(*T) bool, write func(*resp.Writer, *T),
) error {
	var next uint64
	var some []T
	var failed error
	return c.Background(func(context.Context, int64) {
		next, some, failed = gather()
		some = slices.DeleteFunc(some, func(o T) bool { return !mayRead(&o) })
	}, func(c execute.Call) error {
		if failed != nil {
			return reply.Error("ERR " + failed.Error())
		}
		w := c.Reply()
		w.Array(2)
		w.BulkString(strconv.FormatUint(next, 10))
		w.Array(len(some))
		for i := range some {
			write(w, &some[i])
		}
		return nil
	})
}

func selector(o *namedlimit.Override) (kind, of string) {
	if len(o.Keys) == 0 {
		return "pattern", o.Pattern
	}
	return "key", o.Keys[0]
}

// writeFileOverride writes one of the file, with the rules that a plan stands for.
func (k handlers) writeFileOverride(w *resp.Writer, o *namedlimit.Override) {
	kind, of := selector(o)
	w.Array(4)
	w.BulkString(kind)
	w.BulkString(of)
	w.BulkString(strings.Join(o.Words(k.Reading), " "))
	w.Array(len(o.Rules))
	for j := range o.Rules {
		w.BulkString(o.Rules[j].Text(k.Reading))
	}
}

func (k handlers) limitExplain(c execute.Call, args [][]byte) error {
	limits := c.Limits()
	limit, err := argument.Limit(limits, args[2])
	if err != nil {
		return err
	}
	e := limit.Explained(args[3], &limits.Moment, k.Reading)
	if err := c.Apply(catalog.AppendJoined(nil, args[2], args[3]), e); err != nil {
		return err
	}
	w := c.Reply()
	w.Array(1 + len(e.Rules))
	if e.Override == "" {
		w.Null()
	} else {
		w.BulkString(e.Override)
	}
	for i := range e.Rules {
		r := &e.Rules[i]
		if r.BlockedFor == 0 {
			w.Array(2)
		} else {
			w.Array(3)
		}
		w.BulkString(e.Text(i))
		if execute.Result(w, &r.Result); r.BlockedFor > 0 {
			w.Int(r.BlockedFor)
		}
	}
	return nil
}
