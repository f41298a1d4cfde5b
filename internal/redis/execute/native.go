package execute

import (
	"bytes"
	"slices"

	"cellserver/internal/decide/observe"
	"cellserver/internal/limiter"
	"cellserver/internal/lua"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// runNative executes a script that is a single call of CL.THROTTLE or its like, from clients without such a
// command. It returns false where the interpreter is needed: for errors and missing permissions.
func (x *Executor) runNative(name []byte, script *lua.Script, keys, argv [][]byte) bool {
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
	if err := x.Engine.requests[command.ID](&one[0], x.DB, args, x.Engine.Config.Reading, &x.Scratch.names); err != nil {
		return false
	}
	// undeclared
	if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, one[0].Key.Name) }) {
		return false
	}
	if one[0].Quantity < 0 && x.Engine.refusal() != nil || x.Scratch.limitsNewKeys && one[0].MakesKey() && x.mayMakeKey(&one[0].Key) != nil {
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
	x.noteChange(q)
	x.countNamed(one)
	five := integers(&q.Result)
	numbers := append(make([]int64, 0, 6), five[:]...)
	if q.Rule.Flags&limiter.AtMost != 0 {
		numbers = append(numbers, q.Taken())
	}
	x.W.Buf = script.Native.AppendReply(numbers, x.W.Buf, x.W.RESP3)
	return nil
}

// Bounds limit a script to its declared keys, and to reading where it must not write.
type Bounds struct {
	Keys     []store.Key
	ReadOnly bool
	names    map[string]struct{} // nil for few keys
}

// fewDeclared keys are found faster by a linear search.
const fewDeclared = 16

// Index speeds up the search among many keys.
func (b *Bounds) Index() {
	if len(b.Keys) <= fewDeclared {
		return
	}
	b.names = make(map[string]struct{}, len(b.Keys))
	for i := range b.Keys {
		b.names[string(b.Keys[i].Name)] = struct{}{}
	}
}

func (b *Bounds) has(db uint16, name []byte) bool {
	if b.names != nil {
		_, ok := b.names[string(name)]
		return ok && db == b.Keys[0].DB
	}
	for i := range b.Keys {
		if b.Keys[i].DB == db && bytes.Equal(b.Keys[i].Name, name) {
			return true
		}
	}
	return false
}

// admit refuses what a script must not do, whatever its client may.
func (b *Bounds) admit(c *catalog.Command, db uint16, args [][]byte) error {
	switch {
	case c.Flags&catalog.FlagWhole != 0:
		return reply.ErrWholeInScript
	case c.Flags&catalog.FlagWrite != 0 && b.ReadOnly:
		return reply.ErrReadOnlyScript
	}
	var err error
	c.Keys.Each(args, func(name []byte) {
		if !b.has(db, name) {
			err = reply.Undeclared(name)
		}
	})
	return err
}

// Bind puts the Executor of a script into its bounds.
func (x *Executor) Bind(b *Bounds) {
	x.bounds = b
	x.Forbidden = catalog.FlagNoScript | catalog.FlagNotWithKeys // a script may hold keys, too
}
