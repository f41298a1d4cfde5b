package admin

import (
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/glob"
)

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
	return replyOK(c)
}

func (k *Server) scriptKill(c execute.Call, _ [][]byte) error {
	if err := k.Scripts.Kill(); err != nil {
		return err
	}
	return replyOK(c)
}
