package connection

import (
	"bytes"

	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/wire/catalog"
)

const (
	errChannel reply.Error = "ERR " + catalog.RefuseChannel
	errMessage reply.Error = "ERR a message on " + catalog.SentinelChannel + " has at most 4096 bytes and no line breaks"
)

func isChannel(name []byte) bool { return string(name) == catalog.SentinelChannel }

// publish is PUBLISH channel message.
func publish(c execute.Call, conn execute.Connection, args [][]byte) error {
	message := args[2]
	switch {
	case !isChannel(args[1]):
		return errChannel
	case len(message) > catalog.MaxMessageBytes || bytes.ContainsAny(message, "\r\n"):
		return errMessage
	}
	c.Reply().Int(int64(conn.Publish(message)))
	return nil
}

// subscribe is SUBSCRIBE channel [channel ...].
func subscribe(c execute.Call, conn execute.Connection, args [][]byte) error {
	for _, name := range args[1:] {
		if !isChannel(name) {
			return errChannel
		}
	}
	if err := conn.Subscribe(); err != nil {
		return err
	}
	for _, name := range args[1:] {
		replySubscription(c, "subscribe", name, 1)
	}
	return nil
}

// unsubscribe is UNSUBSCRIBE [channel ...]. There is a reply for each, subscribed to or not.
func unsubscribe(c execute.Call, conn execute.Connection, args [][]byte) error {
	names := args[1:]
	all := len(names) == 0
	if all {
		names = [][]byte{[]byte(catalog.SentinelChannel)}
	}
	for _, name := range names {
		ended := false
		if isChannel(name) {
			var err error
			if ended, err = conn.Unsubscribe(); err != nil {
				return err
			}
		}
		if all && !ended {
			name = nil
		}
		left := int64(0)
		if conn.Client().Info().Subscribed {
			left = 1
		}
		replySubscription(c, "unsubscribe", name, left)
	}
	return nil
}

// replySubscription tells of a channel, null for none, and how many the client is now subscribed to.
func replySubscription(c execute.Call, what string, name []byte, channels int64) {
	w := c.Reply()
	w.Push(3)
	w.BulkString(what)
	if name == nil {
		w.Null()
	} else {
		w.Bulk(name)
	}
	w.Int(channels)
}
