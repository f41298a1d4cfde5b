package session

import (
	"context"
	"log/slog"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// scriptHost is what a script reaches by redis.call.
type scriptHost struct{ s *Session }

// Call implements lua.Host.
func (h scriptHost) Call(args [][]byte, resp3 bool, buf []byte) []byte {
	s := h.s
	s.w = resp.Writer{Buf: buf, RESP3: resp3}
	s.dispatch(args)
	s.flush()
	return s.w.Buf
}

// Allows implements lua.Host. It leaves nothing in ACL LOG.
func (h scriptHost) Allows(args [][]byte) (allowed, known bool) {
	c, err := h.s.find(h.s.engine.config.Catalog.Lookup(args[0]), args, len(args))
	if err != nil {
		return false, false
	}
	if h.s.user == nil || h.s.user.Unrestricted() || c.Flags&catalog.FlagNoAuth != 0 {
		return true, true
	}
	reason, _, _ := c.Check(h.s.user, args)
	return reason == acl.Allowed, true
}

// Log implements lua.Host. The line is written when the script has let go of its keys.
func (h scriptHost) Log(level int, message string) {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn}
	if line := (logLine{levels[min(max(level, 0), len(levels)-1)], "script: " + message}); h.s.engine.config.Log.Enabled(context.Background(), line.level) {
		h.s.inner.log(line)
	}
}
