package execute

import (
	"cellserver/internal/decide/observe"
	"cellserver/internal/wire/catalog"
)

// callMonitored is call beside MONITOR. As in Redis, commands inside a script are shown after EVAL, those of
// a transaction before EXEC, and all others after their execution.
func (x *Executor) callMonitored(c *catalog.Command, args [][]byte) {
	if c.Flags&catalog.FlagScript != 0 {
		x.tell(c, args)
		x.call(c, args)
		return
	}
	x.TellsItself = false
	x.call(c, args)
	if !x.TellsItself {
		x.tell(c, args)
	}
}

// tell shows a call to monitoring clients.
func (x *Executor) tell(c *catalog.Command, args [][]byte) {
	if c.Flags&catalog.FlagAdmin == 0 { // hidden, as in Redis
		x.Effects.Send(x.appendLine(nil, x.byScript, observe.Redacted(c, args)))
	}
}

func (x *Executor) appendLine(b []byte, byScript bool, args [][]byte) []byte {
	line := observe.Line{NowNs: x.Now(), DB: x.DB, Peer: &x.Client.Peer, ByScript: byScript, Args: args}
	return line.Append(b)
}
