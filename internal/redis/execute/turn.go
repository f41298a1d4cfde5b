package execute

import (
	"cellserver/internal/decide/queue"
	"cellserver/internal/limiter"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// EnterRoom debits an operation Wait, and returns the client's turn; nil if it has come, or will not.
func (x *Executor) EnterRoom(nowNs int64, key store.Key, o *limiter.Operation) (*queue.Waiter, error) {
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
