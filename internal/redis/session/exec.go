package session

import (
	"context"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/peer"
)

func exec(s *Session, args [][]byte) error {
	name := string(args[0])
	switch {
	case s.multi == nil:
		return s.refuseExec(name, reply.Error("ERR EXEC without MULTI"))
	case s.multi.Failed:
		return s.refuseExec(name, reply.ErrExecFailed)
	}
	x := execute.NewExecution(&s.x, s.multi.Steps, s.watched, name)
	if s.multi.Arguments() <= plannedArguments {
		x.MakePlan()
		return s.beginExec(x)
	}
	makePlan := func(context.Context) { x.MakePlan() }
	return s.x.Role.Background(&s.x, s.engine.Background, makePlan, func(*execute.Executor) error { return s.beginExec(x) })
}

// plannedArguments is the largest transaction that is planned on an event loop.
const plannedArguments = 8000

// beginExec executes a planned transaction, or refuses it.
func (s *Session) beginExec(x *execute.Execution) error {
	if refused := x.Plan.Refused(); refused != nil {
		return s.refuseExec(x.Name, reply.ExecAborted(reply.NotWithKeys(refused)))
	}
	if whole := x.Plan.Whole(); whole != nil && !s.engine.Can.AtOnce {
		return s.refuseExec(x.Name, reply.ExecAborted(reply.WholeInExec(whole)))
	}
	s.setMulti(nil) // commands inside EXEC are not queued
	if slots := x.Slots(); slots != nil {
		return s.x.Role.Background(&s.x, slots, x.Run, func(*execute.Executor) error { return s.finishExec(x) })
	}
	if !x.RunShort() {
		return s.x.Role.Background(&s.x, s.engine.Background, x.Run, func(*execute.Executor) error { return s.finishExec(x) })
	}
	return s.finishExec(x)
}

// refuseExec drops the transaction, and shows EXEC to MONITOR as an Execution would.
func (s *Session) refuseExec(name string, err error) error {
	if s.multi != nil {
		s.discard()
	}
	if s.x.Monitored {
		said := []byte(name)
		s.x.Tell(s.engine.Config.Catalog.Lookup(said), [][]byte{said})
	}
	return err
}

// finishExec replies and takes over the session state left by the commands.
func (s *Session) finishExec(x *execute.Execution) error {
	s.unwatch(&s.x)
	s.x.Client.Change(func(i *clients.Info) { i.Queued = -1 })
	s.x.Client.Hold(clients.Queue, 0)
	switch {
	case x.Err != nil:
		return reply.ExecAborted(x.Err)
	case x.Executor == nil:
		s.x.W.NullArray()
		return nil
	}
	s.x.DB, s.x.Wrote = x.Executor.DB, s.x.Wrote || x.Executor.Wrote
	s.x.W.Array(len(x.Steps))
	s.x.TakeOver(x.Parts)
	if x.Executor.Replies != x.Replies {
		s.x.Replies = x.Executor.Replies
	}
	switch {
	case x.Executor.Status != peer.Close:
	case s.pieces() != nil:
		s.pieces().closes = true
	default:
		s.x.Status = peer.Close
	}
	return nil
}
