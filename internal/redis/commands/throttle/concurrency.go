package throttle

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/lease"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
)

const maxTokenBytes = 64

// acquire is CL.CONCURRENCY ACQUIRE key max lease_ms [token].
func acquire(c execute.Call, args [][]byte) error {
	if len(args) > 6 {
		return reply.UnknownOrArity(args)
	}
	most, err := argument.Number(args[3])
	switch {
	case err != nil:
		return err
	case most < 1 || most > lease.MaxHolders:
		return reply.Cell("max must be 1 to " + strconv.Itoa(lease.MaxHolders) + ", got " + strconv.FormatInt(most, 10))
	}
	leaseNs, err := duration("lease_ms", args[4])
	if err != nil {
		return err
	}
	var token []byte
	if len(args) == 6 {
		token = args[5]
	} else {
		token = fmt.Appendf(nil, "%016x", rand.Uint64())
	}
	o := limiter.Operation{Verb: limiter.Acquire, Unit: funnel.WholeSeconds, Max: most, TTLNs: leaseNs}
	if o.ID, err = holderOf(token); err != nil {
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
	id, err := holderOf(args[len(args)-1])
	if err != nil {
		return err
	}
	return replyCount(c, args[2], &limiter.Operation{Verb: limiter.Release, ID: id})
}

// renew is CL.CONCURRENCY RENEW key [max] lease_ms token.
func renew(c execute.Call, args [][]byte) error {
	if len(args) > 6 {
		return reply.UnknownOrArity(args)
	}
	leaseNs, err := duration("lease_ms", args[len(args)-2])
	if err != nil {
		return err
	}
	id, err := holderOf(args[len(args)-1])
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

// holderOf returns the ID of a token's holder.
func holderOf(token []byte) (id uint64, err error) {
	if len(token) == 0 || len(token) > maxTokenBytes {
		return 0, reply.Cell("token must have 1 to " + strconv.Itoa(maxTokenBytes) + " bytes")
	}
	sum := sha256.Sum256(token)
	return binary.BigEndian.Uint64(sum[:]), nil
}
