package admin

import (
	"context"
	"errors"
	"math"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/glob"
)

// markReplica makes the connection one of a replica's, which ends its service when it ends.
func markReplica(conn execute.Connection) {
	conn.Client().Change(func(i *clients.Info) { i.Replica = true })
}

// syncStart is CL.SYNC START format history offset [TAKE].
func (k *Server) syncStart(c execute.Call, conn execute.Connection, args [][]byte) error {
	format, err := argument.Int(args[2])
	if err != nil {
		return err
	}
	offset, err := argument.Int(args[4])
	if err != nil {
		return err
	}
	takes := len(args) == 6 && glob.Fold(args[5]) == "take"
	switch {
	case len(args) == 6 && !takes:
		return reply.ErrSyntax
	case k.Replication == nil:
		return noReplication
	}
	markReplica(conn)
	client := conn.Client()
	start, err := k.Replication.Attach(replicas.Client{
		ID: client.ID, Address: addressOf(client), Kill: client.Conn.Kill,
	}, int(min(format, math.MaxInt32)), string(args[3]), offset, takes)
	if err != nil {
		return syncError(err)
	}
	replyStart(c.Reply(), &start)
	return nil
}

// replyStart says from where the stream goes on.
func replyStart(w *resp.Writer, start *replicas.Start) {
	mode := "continue"
	if start.Full {
		mode = "full"
	}
	w.Array(8)
	w.Int(int64(start.Format))
	w.BulkString(mode)
	w.BulkString(start.History)
	w.BulkString(start.Parent)
	w.Int(start.Branch)
	w.Int(start.Offset)
	w.Int(start.ClockNs)
	w.Int(int64(flag(start.HasHad)))
}

// withNumber is the handler of a CL.SYNC with one number.
func (k *Server) withNumber(f func(c execute.Call, conn execute.Connection, n int64) error) execute.Handler {
	return execute.OnConnection(func(c execute.Call, conn execute.Connection, args [][]byte) error {
		n, err := argument.Int(args[2])
		switch {
		case err != nil:
			return err
		case k.Replication == nil:
			return noReplication
		}
		return f(c, conn, n)
	})
}

func syncError(err error) error {
	switch {
	case errors.Is(err, replicas.ErrNotLeader):
		return reply.Error("NOTLEADER " + err.Error())
	case errors.Is(err, replicas.ErrHandingOver):
		return reply.Error("HANDINGOVER " + err.Error())
	}
	return reply.Error("ERR " + err.Error())
}

// syncNext is CL.SYNC NEXT offset: it acknowledges, and waits for what follows.
func (k *Server) syncNext(c execute.Call, conn execute.Connection, applied int64) error {
	id := conn.Client().ID
	var next rest
	return c.Until(func(_ context.Context, finish func()) {
		if next.err = k.Replication.Next(id, applied, finish); next.err != nil {
			finish()
		}
	}, replicas.NextTime, func(c execute.Call) error {
		if next.err == nil {
			next.clockNs, next.frames, next.err = k.Replication.Take(id)
		}
		return next.reply(c)
	})
}

// syncHandOver is CL.SYNC HANDOVER [history offset milliseconds]: the replica that sends it is to lead, and
// gets what it does not have. One of an older version sends no more, and gets OK when it may lead.
func (k *Server) syncHandOver(c execute.Call, conn execute.Connection, args [][]byte) error {
	if k.Replication == nil {
		return noReplication
	}
	h := replicas.Handover{Client: conn.Client().ID, To: addressOf(conn.Client())}
	switch len(args) {
	case 2:
	case 5:
		offset, err := argument.Int(args[3])
		if err != nil {
			return err
		}
		within, err := argument.Int(args[4])
		if err != nil {
			return err
		}
		h.History, h.Offset = string(args[2]), offset
		h.Within = time.Duration(max(1, min(within, math.MaxInt32))) * time.Millisecond
	default:
		return reply.ErrSyntax
	}
	markReplica(conn)
	var last rest
	return c.Until(func(_ context.Context, finish func()) {
		k.Replication.HandOver(h, func(clockNs int64, frames []byte, err error) {
			last = rest{clockNs, frames, err}
			finish()
		})
	}, 0, func(c execute.Call) error {
		if last.err == nil && h.Within == 0 {
			return c.OK()
		}
		return last.reply(c)
	})
}

// rest is the leader's time and the frames that a replica lacks.
type rest struct {
	clockNs int64
	frames  []byte
	err     error
}

func (r *rest) reply(c execute.Call) error {
	if r.err != nil {
		return syncError(r.err)
	}
	w := c.Reply()
	w.Array(2)
	w.Int(r.clockNs)
	w.Bulk(r.frames)
	return nil
}

// syncTakeOver is CL.SYNC TAKEOVER offset: a replica that has everything up to there leads after OK. One that
// lacks something gets that.
func (k *Server) syncTakeOver(c execute.Call, conn execute.Connection, offset int64) error {
	id := conn.Client().ID
	var last rest
	return c.Until(func(_ context.Context, finish func()) {
		go func() { // which ends connections
			last.clockNs, last.frames, last.err = k.Replication.TakeOver(id, offset)
			finish()
		}()
	}, 0, func(c execute.Call) error {
		if last.err == nil && len(last.frames) == 0 {
			return c.OK()
		}
		return last.reply(c)
	})
}

// syncPing is CL.SYNC PING microseconds: a replica measures the round trip by it, and says the last one.
func (k *Server) syncPing(c execute.Call, conn execute.Connection, us int64) error {
	markReplica(conn)
	most := time.Minute
	k.Replication.Measured(addressOf(conn.Client()), time.Duration(max(0, min(us, most.Microseconds())))*time.Microsecond)
	return c.OK()
}

// syncLimits is CL.SYNC LIMITS digest: a replica compares its named limits with this server's.
func (k *Server) syncLimits(c execute.Call, _ execute.Connection, known int64) error {
	digests, w := k.NamedLimits.Digests(), c.Reply()
	if int64(digests.Digest) == known {
		digests.All = nil
	}
	w.Array(1 + 3*len(digests.All))
	w.Int(int64(digests.Digest))
	for _, d := range digests.All {
		w.BulkString(d.Name)
		w.Int(int64(flag(d.OfFile)))
		w.Int(int64(d.Digest))
	}
	return nil
}
