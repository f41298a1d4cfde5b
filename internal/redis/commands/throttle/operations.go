package throttle

import (
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/glob"
)

// reserve is CL.RESERVE key max_burst count period amount ttl_ms.
func (k handlers) reserve(c execute.Call, args [][]byte) error {
	var n [4]int64 // max_burst, count, period, amount
	limit, err := k.readFunnel(n[:], args[2:])
	if err != nil {
		return err
	}
	ttlNs, err := argument.Duration("ttl_ms", args[6])
	if err != nil {
		return err
	}
	o, err := argument.Reserve(limit, n[3], ttlNs, funnel.Seconds)
	if err != nil {
		return err
	}
	if err := c.Operate(args[1], &o); err != nil {
		return err
	}
	replyGranted(c, &o.Result, strconv.FormatUint(o.ID, 10))
	return nil
}

// replyGranted replies the five integers, and the ID or token of what was granted.
func replyGranted(c execute.Call, r *funnel.Result, id string) {
	w := c.Reply()
	w.Array(6)
	execute.Integers(w, r)
	if r.Limited {
		w.Null()
	} else {
		w.BulkString(id)
	}
}

// commit is CL.COMMIT key id actual [LATE max_burst count period].
func (k handlers) commit(c execute.Call, args [][]byte) error {
	actual, err := argument.Number(args[3])
	if err != nil {
		return err
	}
	var late *funnel.Limit
	const lateArgs = 8
	if len(args) > 4 {
		if len(args) != lateArgs {
			return reply.ErrArity
		}
		if !glob.IsFolded(args[4], "late") {
			return reply.ErrSyntax
		}
		var n [3]int64 // max_burst, count, period
		limit, err := k.readFunnel(n[:], args[5:])
		if err != nil {
			return err
		}
		late = &limit
	}
	o, err := argument.Commit(args[2], actual, late)
	if err != nil {
		return err
	}
	return replyCount(c, args[1], &o)
}

// acquire is CL.CONCURRENCY ACQUIRE key max lease_ms [token].
func acquire(c execute.Call, args [][]byte) error {
	if len(args) > 6 {
		return reply.ErrArity
	}
	most, err := argument.Number(args[3])
	if err != nil {
		return err
	}
	leaseNs, err := argument.Duration("lease_ms", args[4])
	if err != nil {
		return err
	}
	var token []byte
	if len(args) == 6 {
		token = args[5]
	}
	o, token, err := argument.Acquire(most, leaseNs, token, funnel.WholeSeconds)
	if err != nil {
		return err
	}
	if err := c.Operate(args[2], &o); err != nil {
		return err
	}
	replyGranted(c, &o.Result, string(token))
	return nil
}

// release is CL.CONCURRENCY RELEASE key [max lease_ms] token.
func release(c execute.Call, args [][]byte) error {
	if len(args) != 4 && len(args) != 6 {
		return reply.ErrArity
	}
	o, err := argument.Release(args[len(args)-1])
	if err != nil {
		return err
	}
	return replyCount(c, args[2], &o)
}

// renew is CL.CONCURRENCY RENEW key [max] lease_ms token.
func renew(c execute.Call, args [][]byte) error {
	if len(args) > 6 {
		return reply.ErrArity
	}
	leaseNs, err := argument.Duration("lease_ms", args[len(args)-2])
	if err != nil {
		return err
	}
	id, err := argument.Holder(args[len(args)-1])
	if err != nil {
		return err
	}
	return replyCount(c, args[2], &limiter.Operation{Verb: limiter.Renew, ID: id, TTLNs: leaseNs})
}

// holders is CL.CONCURRENCY LEN key [max lease_ms].
func holders(c execute.Call, args [][]byte) error {
	if len(args) > 5 {
		return reply.ErrArity
	}
	return replyCount(c, args[2], &limiter.Operation{Verb: limiter.Holders})
}

// bucketAdd is CL.BUCKET ADD key capacity n.
func bucketAdd(c execute.Call, args [][]byte) error {
	var n [2]int64
	if err := argument.Numbers(n[:], args[3:]); err != nil {
		return err
	}
	if n[1] < 0 {
		return &funnel.ArgumentError{Name: "n", Value: n[1]}
	}
	return operateBucket(c, args[2], limiter.Operation{Verb: limiter.Add, Max: n[0], Quantity: n[1]})
}

// bucketReset is CL.BUCKET RESET key capacity.
func bucketReset(c execute.Call, args [][]byte) error {
	capacity, err := argument.Number(args[3])
	if err != nil {
		return err
	}
	return operateBucket(c, args[2], limiter.Operation{Verb: limiter.Fill, Max: capacity})
}

func operateBucket(c execute.Call, name []byte, o limiter.Operation) error {
	if err := limiter.CheckCapacity(o.Max); err != nil {
		return reply.Error("ERR " + err.Error())
	}
	return replyCount(c, name, &o)
}

func bucketLen(c execute.Call, args [][]byte) error {
	return replyCount(c, args[2], &limiter.Operation{Verb: limiter.Level})
}

func replyCount(c execute.Call, name []byte, o *limiter.Operation) error {
	err := c.Operate(name, o)
	if err == nil {
		c.Reply().Int(o.Count)
	}
	return err
}
