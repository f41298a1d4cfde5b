package throttle

import (
	"math"

	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
)

// throttleBlocking is CL.BTHROTTLE key max_burst count period quantity timeout.
func (k handlers) throttleBlocking(c execute.Call, args [][]byte) error {
	var n [4]int64 // max_burst, count, period, quantity
	limit, err := k.readFunnel(n[:], args[2:])
	if err != nil {
		return err
	}
	timeoutNs, err := argument.Timeout(args[6])
	if err != nil {
		return err
	}
	if timeoutNs == 0 {
		timeoutNs = math.MaxInt64
	}
	return c.AwaitTurn(args[1], &limiter.Operation{Verb: limiter.Wait, Funnel: limit, Quantity: n[3], TTLNs: timeoutNs})
}
