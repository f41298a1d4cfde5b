package admin

import (
	"context"

	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/glob"
)

func timeCommand(c execute.Call, _ [][]byte) error {
	now, w := c.WallTime(), c.Reply()
	w.Array(2)
	w.BulkInt(now.Unix())
	w.BulkInt(int64(now.Nanosecond() / 1000))
	return nil
}

// shutdown is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. Persistence loses nothing with any of them.
func (k *Server) shutdown(c execute.Call, conn execute.Connection, args [][]byte) error {
	given := map[string]bool{}
	for _, arg := range args[1:] {
		switch option := glob.Fold(arg); option {
		case "nosave", "save", "now", "force", "abort":
			given[option] = true
		default:
			return reply.ErrSyntax
		}
	}
	if given["abort"] && len(given) > 1 || given["save"] && given["nosave"] {
		return reply.ErrSyntax
	}
	if given["abort"] {
		return reply.Error("ERR No shutdown in progress.")
	}
	switch {
	case !given["save"] || k.Keeper == nil && given["force"] || k.Keeper != nil && k.Keeper.Loading():
		// A server that is loading has nothing to save, as in Redis.
		k.shutDown(conn)
		return nil
	case k.Keeper == nil:
		return reply.Error("ERR " + MemoryOnly + ", or send SHUTDOWN NOSAVE")
	}
	return k.saveAndShutDown(c, conn, given["force"])
}

func (k *Server) shutDown(conn execute.Connection) {
	k.Log.Info("a client requested a shutdown", "client", conn.Client().Addr())
	k.Shutdown()
	conn.Close()
}

func (k *Server) memoryPurge(c execute.Call, _ [][]byte) error {
	return c.Background(func(context.Context, int64) { k.ReleaseMemory() }, execute.Call.OK)
}

func (k *Server) scriptExists(c execute.Call, args [][]byte) error {
	c.Reply().Array(len(args) - 2)
	for _, sha := range args[2:] {
		c.Reply().Int(int64(flag(k.Scripts.Lookup(sha) != nil)))
	}
	return nil
}

// scriptFlush is SCRIPT FLUSH [ASYNC|SYNC].
func (k *Server) scriptFlush(c execute.Call, args [][]byte) error {
	if len(args) > 3 || len(args) == 3 && glob.Fold(args[2]) != "async" && glob.Fold(args[2]) != "sync" {
		return reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	k.Scripts.Flush()
	return c.OK()
}

func (k *Server) scriptKill(c execute.Call, _ [][]byte) error {
	if err := k.Scripts.Kill(); err != nil {
		return err
	}
	return c.OK()
}
