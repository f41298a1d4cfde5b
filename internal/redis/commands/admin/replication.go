package admin

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/glob"
)

const noReplication reply.Error = "ERR there is no replication over a store on other machines (--store), which has its own"

// replicaOf is REPLICAOF host port, or NO ONE.
func (k *Server) replicaOf(c execute.Call, args [][]byte) error {
	leads := glob.Fold(args[1]) == "no" && glob.Fold(args[2]) == "one"
	switch {
	case k.Replication == nil && leads:
		return c.OK()
	case k.Replication == nil:
		return noReplication
	case leads:
		if err := k.Replication.Lead(); err != nil {
			return reply.Error("ERR " + err.Error())
		}
		return c.OK()
	}
	port, ok := resp.ParseInt(args[2])
	if !ok || port < 1 || port > math.MaxUint16 {
		return reply.Error("ERR Invalid master port")
	}
	a := replicas.Address{Host: string(args[1]), Port: int(port)}
	if st := k.Replication.Status(); st.Role == replicas.Replica && st.Leader == a {
		c.Reply().Status("OK Already connected to specified master")
		return nil
	}
	if err := replicas.CheckHost(a.Host); err != nil {
		return reply.Error("ERR " + err.Error())
	}
	k.Replication.Follow(a)
	return c.OK()
}

func (k *Server) role(c execute.Call, _ [][]byte) error {
	st := k.replicationStatus()
	w := c.Reply()
	if st.Role == replicas.Replica {
		w.Array(5)
		w.BulkString("slave")
		w.BulkString(st.Leader.Host)
		w.Int(int64(st.Leader.Port))
		w.BulkString(st.Link.String())
		w.Int(st.Offset)
		return nil
	}
	w.Array(3)
	w.BulkString("master")
	w.Int(st.Offset)
	online := st.Replicas[:0]
	for _, r := range st.Replicas {
		if r.State == "online" {
			online = append(online, r)
		}
	}
	w.Array(len(online))
	for _, r := range online {
		w.Strings([]string{r.Address.Host, strconv.Itoa(r.Address.Port), strconv.FormatInt(r.Offset, 10)})
	}
	return nil
}

func (k *Server) replicationStatus() replicas.Status {
	if k.Replication == nil {
		return replicas.Status{History: k.RunID, BranchOffset: -1}
	}
	return k.Replication.Status()
}

// waitCommand is WAIT numreplicas timeout.
func (k *Server) waitCommand(c execute.Call, args [][]byte) error {
	wanted, err := argument.Int(args[1])
	if err != nil {
		return err
	}
	timeout, err := milliseconds(args[2])
	switch {
	case err != nil:
		return err
	case k.Replication == nil:
		c.Reply().Int(0)
		return nil
	case k.Replication.Status().Role == replicas.Replica:
		return reply.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is " +
			"configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	case c.HoldsKeys(): // only a round tells what replicas have
		c.Reply().Int(0)
		return nil
	}
	var acknowledged func() int
	return c.Until(func(ctx context.Context, finish func()) {
		acknowledged = k.Replication.Wait(int(min(max(0, wanted), math.MaxInt32)), finish)
		context.AfterFunc(ctx, func() { acknowledged() })
	}, timeout, func(c execute.Call) error {
		c.Reply().Int(int64(acknowledged()))
		return nil
	})
}

// replConf is REPLCONF option value ..., by which a replica says where its clients are.
func (k *Server) replConf(c execute.Call, conn execute.Connection, args [][]byte) error {
	if len(args)%2 == 0 {
		return reply.ErrSyntax
	}
	a := announced(conn.Client())
	for args = args[1:]; len(args) > 0; args = args[2:] {
		switch option := glob.Fold(args[0]); option {
		case "listening-port":
			port, ok := resp.ParseInt(args[1])
			if !ok || port < 0 || port > math.MaxUint16 {
				return reply.ErrNotInteger
			}
			a.Port = int(port)
		case "ip-address":
			if err := replicas.CheckHost(string(args[1])); err != nil {
				return reply.Error("ERR " + err.Error())
			}
			a.Host = string(args[1])
		case "capa":
		default:
			return reply.Error("ERR Unrecognized REPLCONF option: " + resp.Printable(args[0]))
		}
	}
	if k.Replication == nil {
		return noReplication
	}
	conn.Client().Change(func(i *clients.Info) { i.ReplicaAt = &a })
	return c.OK()
}

// announced returns what a client has said by REPLCONF.
func announced(c *clients.Client) (a replicas.Address) {
	if at := c.Info().ReplicaAt; at != nil {
		a = *at
	}
	return a
}

// addressOf returns where a replica's clients are: by default at the host of its connection.
func addressOf(c *clients.Client) replicas.Address {
	a := announced(c)
	if a.Host != "" {
		return a
	}
	a.Host = "127.0.0.1" // of a unix socket
	if host, _, err := net.SplitHostPort(c.Peer.Addr); err == nil {
		a.Host = host
	}
	return a
}

// infoReplication writes Redis's fields.
func infoReplication(t *infoText) {
	st := t.replicationStatus()
	if st.Role == replicas.Replica {
		infoReplica(t, &st)
	} else {
		t.field("role", "master")
	}
	t.field("connected_slaves", len(st.Replicas))
	if st.MinReplicas > 0 {
		t.field("min_slaves_good_slaves", st.Good)
	}
	for i, r := range st.Replicas {
		t.field("slave"+strconv.Itoa(i), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d",
			r.Address.Host, r.Address.Port, r.State, r.Offset, r.LagNs/int64(time.Second)))
	}
	state, parent := "no-failover", strings.Repeat("0", len(st.History))
	if st.HandingOver {
		state = "failover-in-progress"
	}
	if st.Parent != "" {
		parent = st.Parent
	}
	t.fields("master_failover_state", state, "master_replid", st.History, "master_replid2", parent, "master_repl_offset", st.Offset,
		"second_repl_offset", st.BranchOffset, "repl_backlog_active", flag(st.Backlog > 0), "repl_backlog_size", st.MaxBacklog,
		"repl_backlog_first_byte_offset", st.Offset-st.Backlog, "repl_backlog_histlen", st.Backlog)
	if t.Replication == nil {
		return
	}
	t.fields("cell_starting", t.Replication.Starting(), "cell_states_kept", st.Kept.String(), "cell_full_syncs", st.Counts.FullSyncs, "cell_partial_syncs", st.Counts.PartialSyncs,
		"cell_incomplete_rounds", st.Counts.Incomplete, "cell_evicted_replicas", st.Counts.Evicted,
		"cell_full_syncs_taken", st.Counts.FullSyncsTaken, "cell_promotions", st.Counts.Promotions, "cell_demotions", st.Counts.Demotions,
		"cell_handovers", st.Counts.Handovers, "cell_handover_timeouts", st.Counts.HandoverTimeouts,
		"cell_handover_failures", st.Counts.HandoverFailures, "cell_round_trip_usec", st.RoundTrip.Microseconds(),
		"cell_handover_bound_msec", replicas.Bound(st.RoundTrip).Milliseconds(), "cell_peer_leads", flag(st.PeerLeads))
	if st.HandoverError != nil {
		t.field("cell_handover_error", resp.PrintableN([]byte(st.HandoverError.Error()), maxReasonBytes))
	}
}

func infoReplica(t *infoText, st *replicas.Status) {
	link, ago := "down", int64(-1)
	if st.Link == replicas.LinkConnected {
		link, ago = "up", (t.nowNs-st.LastIONs)/int64(time.Second)
	}
	t.fields("role", "slave", "master_host", st.Leader.Host, "master_port", st.Leader.Port, "master_link_status", link,
		"master_last_io_seconds_ago", ago, "master_sync_in_progress", flag(st.Link == replicas.LinkSync),
		"slave_read_repl_offset", st.Offset, "slave_repl_offset", st.Offset)
	if st.Link == replicas.LinkSync {
		t.fields("master_sync_total_bytes", -1, "master_sync_read_bytes", st.SyncBytes)
	}
	if st.Link != replicas.LinkConnected {
		t.field("master_link_down_since_seconds", max(0, t.nowNs-st.LinkDownSinceNs)/int64(time.Second))
		if st.LinkError != nil {
			t.field("cell_link_error", resp.PrintableN([]byte(st.LinkError.Error()), maxReasonBytes))
		}
	}
	if st.LagNs != math.MaxInt64 {
		t.field("cell_lag_msec", st.LagNs/int64(time.Millisecond))
	}
	t.field("cell_limits_differ", len(st.Differing))
	if len(st.Differing) > 0 {
		t.field("cell_limits_differing", replicas.SomeNames(st.Differing))
	}
	t.field("cell_latest_usec", st.LatestNs/int64(time.Microsecond))
	t.fields("slave_priority", st.Priority, "slave_read_only", 1, "replica_announced", 1)
}
