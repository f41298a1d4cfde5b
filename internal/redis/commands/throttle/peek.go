package throttle

import (
	"cellserver/internal/limiter"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// peek is CL.PEEK key max_burst count period [quantity].
func (k handlers) peek(c execute.Call, args [][]byte) error {
	var q store.Request
	if err := argument.Peek(&q, c.DB(), args, k.Reading); err != nil {
		return err
	}
	tatNs, _, err := c.TAT(args[1])
	if err != nil {
		return err
	}
	result, _, err := q.Rule.Decide(&limiter.State{ExpiresNs: tatNs}, c.Now(), q.Quantity)
	if err != nil {
		return reply.StoreFailed(err)
	}
	execute.Result(c.Reply(), &result)
	return nil
}
