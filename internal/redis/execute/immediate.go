package execute

import (
	"context"
	"sync/atomic"

	"cellserver/internal/base/often"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/queue"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
)

// immediate applies the effects of a client's own commands immediately.
type immediate struct{ x *Executor }

func (a immediate) Send(lines []byte) {
	if len(lines) == 0 {
		return
	}
	e := a.x.Engine
	e.closeSlow(e.Config.Records.Monitors.Send(lines), &e.slowMonitors, "a client in MONITOR is too slow for what it is sent; connection closed",
		"have it read faster, or use SLOWLOG, CL.TOP and /metrics instead")
}

func (a immediate) Publish(to *clients.Channel, lines []byte) (receivers int) {
	e := a.x.Engine
	receivers = to.Len()
	e.closeSlow(to.Send(lines), &e.slowSubscribers, "a subscriber of "+to.Name+" is too slow for what it is sent; connection closed",
		"have it read faster")
	return receivers
}

// closeSlow closes clients that do not read what they are sent.
func (e *Engine) closeSlow(slow []*clients.Listener, counter *often.Counter, what, hint string) {
	for _, l := range slow {
		l.Client.Conn.Kill()
		if count := counter.Due(e.Config.Now()); count > 0 {
			e.Config.Log.Warn(what, "client", l.Client.Addr(), "pending_bytes", clients.MaxBacklogBytes, "count", count, "hint", hint)
		}
	}
}

// Bounds for lines that scripts log a second; the rest is counted. A line has at most 1 KiB, so no number of
// clients fills a disk, and none displaces the lines of others.
const (
	maxClientLines = 10
	maxScriptLines = 100 // of all clients
)

func (a immediate) Log(lines []LogLine, leftOut int) {
	x, e := a.x, a.x.Engine
	for _, line := range lines {
		if x.scriptLines == nil {
			x.scriptLines = &often.Rate{}
		}
		nowNs := e.Config.Now()
		if !x.scriptLines.Allow(nowNs, maxClientLines) || !e.scriptLines.Allow(nowNs, maxScriptLines) {
			leftOut++
			continue
		}
		attrs := []any{"client", x.Client.Addr()}
		if n := e.linesLeftOut.Swap(0); n > 0 {
			attrs = append(attrs, "left_out_before", n)
		}
		e.Config.Log.Log(context.Background(), line.Level, line.Message, attrs...)
	}
	if leftOut > 0 {
		e.linesLeftOut.Add(int64(leftOut))
		e.Config.Records.LeaveOutScriptLines(leftOut)
	}
}

func (immediate) Kill(victim *clients.Client) { victim.Conn.Kill() }

func (immediate) Unblock(turn *queue.Waiter, why queue.Outcome) bool { return turn.Leave(why) }

func (a immediate) Look(key store.Key) { a.x.Engine.Queue.Look(key) }

func (a immediate) LookAtAll() { a.x.Engine.Queue.LookAtAll() }

func (immediate) Count(counter *atomic.Uint64, n uint64) { counter.Add(n) }

func (a immediate) Spend(to *topkeys.Spenders, key *store.Key, units int64) {
	to.Add(a.x.Engine.Config.Now(), key.DB, key.Name, units)
}

// callMonitored is call beside MONITOR. As in Redis, commands inside a script are shown after EVAL, those of
// a transaction before EXEC, and all others after their execution.
func (x *Executor) callMonitored(c *catalog.Command, args [][]byte) {
	if c.Flags&catalog.FlagScript != 0 {
		x.Tell(c, args)
		x.call(c, args)
		return
	}
	x.call(c, args)
	if c.Name != "exec" { // it shows itself
		x.Tell(c, args)
	}
}

// Tell shows a call to monitoring clients.
func (x *Executor) Tell(c *catalog.Command, args [][]byte) {
	if c.Flags&catalog.FlagAdmin == 0 { // hidden, as in Redis
		line := x.appendLine(nil, x.Mode.byScript(), observe.Redacted(c, args))
		x.Effects.Send(line)
		x.spend(len(line) * x.Engine.Config.Records.Monitors.Len()) // each gets a copy
	}
}

func (x *Executor) appendLine(b []byte, byScript bool, args [][]byte) []byte {
	line := observe.Line{NowNs: x.Now(), DB: x.DB, Peer: &x.Client.Peer, ByScript: byScript, Args: args}
	return line.Append(b)
}
