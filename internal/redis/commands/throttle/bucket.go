package throttle

import (
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
)

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
		return reply.Cell(err.Error())
	}
	return replyCount(c, name, &o)
}

// bucketLen is CL.BUCKET LEN key.
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
