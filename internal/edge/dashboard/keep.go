package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// durability summarizes persistence in a few words.
func (v *view) durability() string {
	t := v.t
	switch st := v.durable; {
	case st == nil:
		return t.DurabilityOff
	case st.Loading:
		return fmt.Sprintf(t.LoadingPart, words.Percent(min(1, float64(st.LoadedBytes)/max(1, float64(st.LoadBytes)))))
	case st.Fault != nil:
		return fmt.Sprintf(t.FaultFor, time.Duration(v.page.source.Now()-st.FaultSinceNs).Round(time.Second))
	case st.Interval == store.NoSync:
		return t.SyncBySystem
	case st.Interval == 0:
		return t.SyncBeforeReplies
	default:
		return fmt.Sprintf(t.SyncEvery, words.Wait(uint64(st.Interval)))
	}
}

func (v *view) durabilityPart() g.Node {
	st, t := v.durable, v.t
	if st == nil {
		return nil
	}
	ago := func(ns int64) string {
		if ns == 0 {
			return t.Never
		}
		return fmt.Sprintf(t.Ago, t.Span(time.Duration(v.page.source.Now()-ns)))
	}
	saved := ago(st.LastSaveNs)
	switch {
	case st.Saving:
		saved = t.Saving
	case st.LastSaveErr != nil:
		saved = fmt.Sprintf(t.SaveFailed, st.LastSaveErr)
	}
	return v.section("durability", t.Durability, list("list",
		entry(t.Sync, v.durability()),
		entry(t.LastSync, words.DurationNs.Text(float64(st.LastSyncTookNs))),
		entry(t.Written, words.Bytes.Text(float64(st.WrittenBytes))),
		entry(t.LogSize, words.Bytes.Text(float64(st.LogBytes))),
		entry(t.Snapshot, words.Bytes.Text(float64(st.SnapshotBytes))),
		entry(t.LastSnapshot, saved),
		entry(t.WaitingReplies, words.Grouped(st.WaitingReplies)),
		entry(t.Faults, words.Grouped(int64(st.Faults))),
	))
}

// storePart describes a store on other machines.
func (v *view) storePart() g.Node {
	st, t := v.remote, v.t
	if st == nil {
		return nil
	}
	s, whole := &st.Stats, func(n uint64) string { return words.Count.Text(float64(n)) }
	note := fmt.Sprintf(t.StoreNote, st.Store, whole(s.Requests), whole(s.Asked), whole(s.Scripts), whole(s.Prefiltered),
		whole(s.ByPolicy()), st.Policy)
	return v.section("store", t.Store, el("p", text(note)), g.If(len(s.Servers) > 0, scrolling(t.StoreScroll, el("table",
		headings(t.StoreServer, t.Circuit, t.Queued, t.InFlight, t.RoundTrip),
		el("tbody", g.Map(s.Servers, func(server store.ServerStats) g.Node {
			return el("tr", attr("data-k", server.Addr), el("th", attr("scope", "row"), text(server.Addr)),
				cells(circuitText(t, server.Circuit), words.Count.Text(float64(server.Queued)), words.Count.Text(float64(server.InFlight)),
					words.DurationNs.Text(float64(server.RoundTripNs))))
		})),
	))))
}

func circuitText(t *words.Texts, state string) string {
	return cmp.Or(map[string]string{"open": t.CircuitOpen, "half-open": t.CircuitHalfOpen}[state], t.StoreAnswers)
}

// storeState summarizes the store's health in a few words.
func storeState(t *words.Texts, st *store.Health, nowNs int64) string {
	switch {
	case !st.Asked:
		return t.StoreConnecting
	case st.Away():
		return fmt.Sprintf(t.StoreDownFor, time.Duration(nowNs-st.SinceNs).Round(time.Second))
	case st.Fault != nil:
		return fmt.Sprintf(t.StorePartly, st.Up, st.Masters)
	}
	return t.StoreAnswers
}

// replicationStatus returns the state of replication, or nil for a server that has nothing to do with it: a
// leader that has had no replica since its start and requires none.
func (p *Page) replicationStatus() *replicas.Status {
	st := reading(p.source.Replication)
	if st != nil && st.Role == replicas.Leader && len(st.Replicas) == 0 && st.MinReplicas == 0 && st.Counts == (replicas.Counts{}) {
		return nil
	}
	return st
}

// isReplica reports whether the server is a replica, which answers only calls that change nothing.
func (v *view) isReplica() bool {
	return v.replication != nil && v.replication.Role == replicas.Replica
}

// role describes the server's part in a few words.
func role(t *words.Texts, st *replicas.Status) string {
	if st.Role == replicas.Replica {
		return fmt.Sprintf(t.RoleReplica, leader(st))
	}
	return t.RoleLeader
}

// replicaNotices say what a replica does not do, and who does.
func (v *view) replicaNotices() (notices []string) {
	if !v.isReplica() {
		return nil
	}
	notices = []string{fmt.Sprintf(v.t.ReplicaNotice, leader(v.replication))}
	if v.replication.Link == replicas.LinkSync {
		notices = append(notices, fmt.Sprintf(v.t.ReplicaSyncing, words.Bytes.Text(float64(v.replication.SyncBytes))))
	}
	return notices
}

// replicationFaults returns that a replica has no link to its leader or is far behind, or that a leader lacks
// replicas or is not the only one.
func (v *view) replicationFaults() []fault {
	st, t := v.replication, v.t
	if st == nil {
		return nil
	}
	again := v.within(tooFewReplicas)
	lagNs := farthestNs(st)
	switch {
	case st.PeerLeads:
		return []fault{{alarm: peerLeads, what: t.PeerLeads, meaning: t.PeerLeadsMeans, todo: t.PeerLeadsDo}}
	case st.Role == replicas.Leader && (st.Good < st.MinReplicas || tooFewReplicas.over(float64(again)) != calm):
		return []fault{{
			alarm: tooFewReplicas, what: t.TooFewReplicas, meaning: t.TooFewRefuses,
			todo: t.Sentences(fmt.Sprintf(t.TooFewGood, st.Good, st.MinReplicas), t.TooFewDo),
		}}
	case st.Role == replicas.Replica && st.Link != replicas.LinkConnected && st.Link != replicas.LinkSync:
		sinceNs := cmp.Or(st.LinkDownSinceNs, v.page.source.Now())
		return []fault{{
			alarm: replicaLinkDown, what: fmt.Sprintf(t.LinkDownSince, utc(sinceNs)), meaning: t.LinkDownForgets,
			cause: errorText(st.LinkError), todo: t.LinkDownDo,
		}}
	case replicationLag.over(float64(lagNs)/1e9) != calm:
		most := words.Wait(uint64(replicationLag.row().above * 1e9))
		return []fault{{
			alarm: replicationLag, what: fmt.Sprintf(t.Lags, most), meaning: t.LagForgets,
			figure: fmt.Sprintf(t.LagNow, lag(lagNs)), todo: t.LagDo,
		}}
	}
	return nil
}

// farthestNs returns the lag of a replica whose link is up, or the largest of a leader's replicas that
// follow.
func farthestNs(st *replicas.Status) (lagNs int64) {
	if st.Role == replicas.Replica {
		if st.Link == replicas.LinkConnected && st.LagNs != math.MaxInt64 {
			return st.LagNs
		}
		return 0
	}
	for _, r := range st.Replicas {
		if r.State == "online" {
			lagNs = max(lagNs, r.LagNs)
		}
	}
	return lagNs
}

// replicationTile returns a replica's lag or the state of its link, or how many replicas a leader lacks.
func (v *view) replicationTile() []tile {
	st, t := v.replication, v.t
	switch {
	case st == nil:
		return nil
	case st.Role == replicas.Leader && st.Good < st.MinReplicas:
		return []tile{{id: "replicas", name: t.Replicas, text: fmt.Sprintf("%d / %d", st.Good, st.MinReplicas)}}
	case st.Role == replicas.Leader:
		return nil
	case st.Link == replicas.LinkConnected:
		return []tile{{id: "lag", name: t.ReplicationLag, text: lag(st.LagNs)}}
	}
	return []tile{{id: "link", name: t.LeaderLink, text: link(t, st.Link)}}
}

// lag formats a lag, which is the largest before the first states have come.
func lag(ns int64) string {
	if ns == math.MaxInt64 {
		return "–"
	}
	return words.Wait(uint64(max(0, ns)))
}

func leader(st *replicas.Status) string { return cmp.Or(st.Leader.String(), "–") }

func link(t *words.Texts, l replicas.Link) string {
	return [...]string{
		replicas.LinkConnect: t.LinkDown, replicas.LinkConnecting: t.StoreConnecting,
		replicas.LinkSync: t.FullSync, replicas.LinkConnected: t.LinkConnected,
	}[l]
}

// replicationPart shows the state in detail, as of its last turn to be renewed.
func (v *view) replicationPart() g.Node {
	st, t := v.replicated, v.t
	if st == nil {
		return nil
	}
	size := func(n int64) string { return words.Bytes.Text(float64(n)) }
	whole := func(n uint64) string { return words.Grouped(int64(n)) }
	n, facts := &st.Counts, g.Group{entry(t.Role, role(t, st))}
	if st.Role == replicas.Replica {
		facts = append(facts, entry(t.LeaderLink, link(t, st.Link)), entry(t.ReplicationLag, lag(st.LagNs)),
			entry(t.StreamApplied, size(st.Offset)), entry(t.FullSyncsTaken, whole(n.FullSyncsTaken)))
	} else {
		facts = append(facts, entry(t.Replicas, strconv.Itoa(len(st.Replicas))), entry(t.StreamGathered, size(st.Offset)),
			entry(t.Backlog, size(st.Backlog)+" "+fmt.Sprintf(t.Of, size(st.MaxBacklog))),
			entry(t.FullSyncsGiven, whole(n.FullSyncs)), entry(t.PartialSyncs, whole(n.PartialSyncs)), entry(t.ReplicasEvicted, whole(n.Evicted)))
	}
	switch failed := n.HandoverTimeouts + n.HandoverFailures; {
	case st.HandingOver:
		facts = append(facts, entry(t.LeaderChange, t.HandingOver))
	case n.Handovers+failed > 0:
		facts = append(facts, entry(t.LeaderChange, fmt.Sprintf(t.HandoverCount, whole(n.Handovers+failed), whole(failed))))
	}
	return v.section("replication", t.Replication, replicaTable(t, st.Replicas), list("list", facts...))
}

// maxReplicaRows bounds the table of replicas, and so the size of an update.
const maxReplicaRows = 10

func replicaTable(t *words.Texts, all []replicas.ReplicaStatus) g.Node {
	if len(all) == 0 {
		return nil
	}
	return scrolling(t.ReplicaScroll, el("table",
		headings(t.Replica, t.Circuit, t.Lag, t.LagBytes),
		el("tbody", g.Map(all[:min(len(all), maxReplicaRows)], func(r replicas.ReplicaStatus) g.Node {
			return el("tr", attr("data-k", strconv.FormatInt(r.ClientID, 10)), el("th", attr("scope", "row"), text(r.Address.String())),
				cells(replicaState(t, r.State), lag(r.LagNs), words.Bytes.Text(float64(r.LagBytes))))
		})),
	))
}

func replicaState(t *words.Texts, state string) string {
	return cmp.Or(map[string]string{"online": t.ReplicaFollows, "send_bulk": t.FullSync}[state], t.ReplicaWaits)
}
