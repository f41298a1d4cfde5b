package admin

import (
	"context"
	"strconv"

	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/session"
	"cellserver/internal/wire/glob"
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

// replicaOf is REPLICAOF NO ONE, which is how it is, or a refusal.
func replicaOf(c session.Call, args [][]byte) error {
	if glob.Fold(args[1]) == "no" && glob.Fold(args[2]) == "one" {
		c.Reply().OK()
		return nil
	}
	return reply.Error("ERR cellserver has no replication; run it over Redis or Valkey Cluster to share limits between machines")
}

// shutdown is SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]. What has changed is kept in any case.
func (k *Config) shutdown(c session.Call, conn session.Connection, args [][]byte) error {
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
	case !given["save"] || k.Keeper == nil && given["force"] || k.Keeper != nil && k.Keeper.Loading(): // then there is nothing to save, as in Redis
		k.shutDown(conn)
		return nil
	case k.Keeper == nil:
		return reply.Error("ERR " + MemoryOnly + ", or send SHUTDOWN NOSAVE")
	}
	return k.saveAndShutDown(c, conn, given["force"])
}

func (k *Config) shutDown(conn session.Connection) {
	k.Log.Info("a client requested a shutdown", "client", conn.Client().Addr())
	k.Shutdown()
	conn.Close()
}

// memoryPurge gives freed memory back to the system.
func (k *Config) memoryPurge(c session.Call, _ [][]byte) error {
	return c.Background(func(context.Context, int64) { k.ReleaseMemory() }, func(c session.Call) error {
		c.Reply().OK()
		return nil
	})
}

// waitCommand replies how many replicas have all writes: there are none.
func waitCommand(c session.Call, args [][]byte) error {
	if _, err := argument.Int(args[1]); err != nil {
		return err
	}
	if _, err := milliseconds(args[2]); err != nil {
		return err
	}
	c.Reply().Int(0)
	return nil
}
