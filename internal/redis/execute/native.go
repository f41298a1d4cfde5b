package execute

import (
	"bytes"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/lua"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// RunNative executes a script that is a single call of CL.THROTTLE or its like, from clients without such a
// command. It returns false where the interpreter is needed: for errors and missing permissions.
func (x *Executor) RunNative(name []byte, script *lua.Script, keys, argv [][]byte) bool {
	if script.Native == nil || len(keys)+len(argv) > resp.LongArgs {
		return false
	}
	args, ok := script.Native.Args(x.Scratch.call[:0], keys, argv)
	one := x.Scratch.batch[:1] // it has been flushed
	defer func() {
		clear(x.Scratch.call[:]) // see End
		x.Scratch.forget(one)
	}()
	if !ok {
		return false
	}
	command := x.Engine.Config.Catalog.Called(args)
	if command == nil || !command.Batches || !isAllowed(x.User, command, args) {
		return false
	}
	if err := x.Engine.requests[command.ID](&one[0], x.DB, args, x.Engine.Config.Reading, &x.Scratch.joined); err != nil {
		return false
	}
	// undeclared
	if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, one[0].Key.Name) }) {
		return false
	}
	if one[0].Quantity < 0 && x.Engine.isFrozen() || x.Scratch.limitsNewKeys && one[0].MakesKey() && x.mayMakeKey(&one[0].Key) != nil {
		return false
	}
	if x.Monitored {
		x.Effects.Send(x.appendLine(nil, true, args))
	}
	if later := x.Role.Decide(x, command, one); later != nil {
		x.Role.Await(later, func(x *Executor, answered []store.Request) error { return x.replyNative(command, script, answered) })
	} else if err := x.replyNative(command, script, one); err != nil {
		x.FailCommand(x.Engine.Config.Catalog.Lookup(name), nil, err)
	}
	return true
}

// isAllowed reports whether the user may make the script's call. The interpreter replies the denial.
func isAllowed(user *acl.User, c *catalog.Command, args [][]byte) bool {
	if user.Unrestricted() {
		return true
	}
	reason, _, _ := c.Check(user, args)
	return reason == acl.Allowed
}

// replyNative replaces the command's reply by the script's.
func (x *Executor) replyNative(c *catalog.Command, script *lua.Script, one []store.Request) error {
	q := &one[0]
	if q.Err != nil { // the script fails with it
		records := x.Engine.Config.Records
		records.Failed(c)
		records.Script(observe.ScriptFailed)
		return reply.StoreFailed(q.Err)
	}
	x.Scratch.Local.NativeScript()
	from := len(x.W.Buf)
	x.replyRequest(q)
	countNamed(one, x.Effects)
	to := len(x.W.Buf)
	x.W.Buf = script.Native.AppendReply(x.W.Buf[from:], x.W.Buf, x.W.RESP3)
	x.W.Buf = append(x.W.Buf[:from], x.W.Buf[to:]...)
	return nil
}
