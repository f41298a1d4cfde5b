package throttle

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
)

// acquire is CL.CONCURRENCY ACQUIRE key max lease_ms [token].
func acquire(c execute.Call, args [][]byte) error {
	if len(args) > 6 {
		return reply.UnknownOrArity(args)
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
		return reply.UnknownOrArity(args)
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
		return reply.UnknownOrArity(args)
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
		return reply.UnknownOrArity(args)
	}
	return replyCount(c, args[2], &limiter.Operation{Verb: limiter.Holders})
}
