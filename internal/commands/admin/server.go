package admin

import (
	"context"
	"strconv"

	"cellserver/internal/argument"
	"cellserver/internal/glob"
	"cellserver/internal/memory"
	"cellserver/internal/reply"
	"cellserver/internal/resp"
	"cellserver/internal/session"
)

func timeCommand(c session.Call, _ [][]byte) error {
	now := c.WallTime()
	c.Reply().Strings([]string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)})
	return nil
}

func role(c session.Call, _ [][]byte) error {
	c.Reply().Array(3)
	c.Reply().BulkString("master")
	c.Reply().Int(0)
	c.Reply().Array(0)
	return nil
}

// lastSave replies when the server started: there has been nothing to save since.
func (k *Config) lastSave(c session.Call, _ [][]byte) error {
	c.Reply().Int(k.StartedNs / 1e9)
	return nil
}

// replicaOf is REPLICAOF NO ONE, which is how it is, or a refusal.
func replicaOf(c session.Call, args [][]byte) error {
	if glob.Fold(args[1]) == "no" && glob.Fold(args[2]) == "one" {
		c.Reply().OK()
		return nil
	}
	return reply.Error("ERR cellserver has no replication; run it over Redis or Valkey Cluster to share limits between machines")
}

// shutdown is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. There is nothing to save.
func (k *Config) shutdown(_ session.Call, conn session.Connection, args [][]byte) error {
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
	k.Log.Info("a client requested a shutdown", "client", conn.Client().Addr())
	k.Shutdown()
	conn.Close()
	return nil
}

// memoryPurge gives freed memory back to the system.
func memoryPurge(c session.Call, _ [][]byte) error {
	return c.Background(func(context.Context, int64) { memory.Release() }, func(c session.Call) error {
		c.Reply().OK()
		return nil
	})
}

// waitCommand replies how many replicas have all writes: there are none.
func waitCommand(c session.Call, args [][]byte) error {
	if _, err := argument.Int(args[1]); err != nil {
		return err
	}
	switch timeoutMs, ok := resp.ParseInt(args[2]); {
	case !ok:
		return reply.Error("ERR timeout is not an integer or out of range")
	case timeoutMs < 0:
		return reply.Error("ERR timeout is negative")
	}
	c.Reply().Int(0)
	return nil
}
