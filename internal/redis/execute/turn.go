package execute

import (
	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// EnterQueue charges an operation Wait and returns the client's turn, or nil if it need not or must not wait.
func (x *Executor) EnterQueue(nowNs int64, key store.Key, o *limiter.Operation) (*queue.Waiter, error) {
	if err := x.mayApply(&key, o); err != nil {
		return nil, err
	}
	turn, err := x.Engine.Room.Enter(nowNs, key, o, x.Client.Conn)
	if err != nil {
		return nil, reply.StoreFailed(err)
	}
	x.Engine.Decider.Applied(nowNs, key, o, &x.Scratch.Local)
	return turn, nil
}
