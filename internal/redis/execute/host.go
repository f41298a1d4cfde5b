package execute

import (
	"context"
	"log/slog"

	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

type scriptRole struct{ NestedRole }

func (scriptRole) Words() Words { return scriptWords{} }

// scriptWords has the wording of refusals in scripts.
type scriptWords struct{}

func (scriptWords) Unknown(*catalog.Catalog, [][]byte) error { return reply.ErrUnknownInScript }

func (scriptWords) UnknownSubcommand(*catalog.Command, []byte) error { return reply.ErrUnknownInScript }

func (scriptWords) Arity(*catalog.Command, int) error { return reply.ErrArityInScript }

func (scriptWords) Forbidden(catalog.Flag) error { return reply.ErrNotInScript }

func (scriptWords) Denied(reason acl.Reason, _ string) string {
	switch reason {
	case acl.DeniedCommand:
		return "ERR The user executing the script can't run this command or subcommand"
	case acl.DeniedChannel:
		return "ERR The user executing the script can't publish to the channel mentioned in the command"
	default:
		return "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
	}
}

func (scriptWords) Context() string { return "lua" }

// scriptHost serves redis.call.
type scriptHost struct{ x *Executor }

func (h scriptHost) Call(args [][]byte, resp3 bool, buf []byte) []byte {
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
func (h scriptHost) Allows(args [][]byte) (allowed, known bool) {
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
func (h scriptHost) Log(level int, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	line := LogLine{Level: levels[min(max(level, 0), len(levels)-1)], Message: "script: " + message}
	if h.x.Engine.Config.Log.Enabled(context.Background(), line.Level) {
		h.x.Effects.Log([]LogLine{line}, 0)
	}
}
