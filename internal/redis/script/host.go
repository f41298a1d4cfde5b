package script

import (
	"context"
	"log/slog"

	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

type role struct{ execute.NestedRole }

func (role) Words() execute.Words { return words{} }

// words has the wording of refusals in scripts.
type words struct{}

func (words) Unknown([][]byte) error { return reply.ErrUnknownInScript }

func (words) UnknownSubcommand(*catalog.Command, []byte) error { return reply.ErrUnknownInScript }

func (words) Arity(*catalog.Command, int) error { return reply.ErrArityInScript }

func (words) Forbidden() error { return reply.ErrNotInScript }

func (words) Denied(reason acl.Reason, _ string) string {
	switch reason {
	case acl.DeniedCommand:
		return "ERR The user executing the script can't run this command or subcommand"
	case acl.DeniedChannel:
		return "ERR The user executing the script can't publish to the channel mentioned in the command"
	default:
		return "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	}
}

func (words) Context() string { return "lua" }

// host serves redis.call.
type host struct{ x *execute.Executor }

func (h host) Call(args [][]byte, resp3 bool, buf []byte) []byte {
	x := h.x
	x.W = resp.Writer{Buf: buf, RESP3: resp3}
	c, err := x.Admit(x.Lookup(args[0]), args)
	if err != nil {
		x.Reject(c, args)
		x.Fail(c, args, err)
	} else {
		x.Run(c, args)
		x.Flush()
	}
	return x.W.Buf
}

// Allows leaves no entry in ACL LOG.
func (h host) Allows(args [][]byte) (allowed, known bool) {
	x := h.x
	c, err := x.Find(x.Engine.Config.Catalog.Lookup(args[0]), args, len(args))
	if err != nil {
		return false, false
	}
	if x.User == nil || !c.Asks(x.User) || c.Flags&catalog.FlagNoAuth != 0 {
		return true, true
	}
	reason, _, _ := c.Check(x.User, args)
	return reason == acl.Allowed, true
}

// Log writes the line when the script has released its keys.
func (h host) Log(level int, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	line := execute.LogLine{Level: levels[min(max(level, 0), len(levels)-1)], Message: "script: " + message}
	if h.x.Engine.Config.Log.Enabled(context.Background(), line.Level) {
		h.x.Effects.Log([]execute.LogLine{line}, 0)
	}
}
