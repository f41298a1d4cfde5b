package execute

import (
	"cellserver/internal/decide/clients"
	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
	"cellserver/internal/wire/peer"
)

// MaxScratchNameBytes is how large the buffer of joined names is kept.
const MaxScratchNameBytes = maxScratchNameBytes

// JoinedBytes is how large that is now.
func (c Call) JoinedBytes() int { return cap(c.x.Scratch.names.Joined) }

// InTransaction returns an Executor of a step of EXEC, whose scripts share a time.
func InTransaction(e *Engine, time *lua.Allowance) *Executor {
	client := clients.New(peer.Peer{}, nil, 0)
	x := &Executor{Engine: e, Client: client}
	inner, _ := x.Within(InExec, &execRole{time: time}, &transact.Space{NowNs: 1})
	return inner
}
