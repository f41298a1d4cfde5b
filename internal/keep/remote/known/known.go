package remote

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"cellserver/internal/funnel"
	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// recentBytes bounds the table of TATs that were read lately, each of which takes 32.
const recentBytes = 4 << 20

// knowsAny reports whether requests may be decided here.
func (s *Store) knowsAny() bool { return s.recent != nil || s.leases != nil }

// nodeOf returns the node of a key, or nil if nobody knows it, or has a use for it.
func (s *Store) nodeOf(name []byte) *node {
	if !s.knowsAny() && !s.Pool.Clustered() {
		return nil
	}
	key := ""
	if s.Pool.Clustered() {
		key = s.KeyPrefix + string(name)
	}
	server, err := s.Pool.Of(context.Background(), key)
	if err != nil {
		return nil
	}
	return s.node(server)
}

// known decides a request of a funnel by units that were taken ahead, or by a TAT that was read lately. It
// leaves refunds to the server, and what comes behind a refund that may not have been executed yet.
func (s *Store) known(q *store.Request, n *node, localNs int64, behindRefund bool) bool {
	if q.Rule.Kind != limiter.Funnel || n == nil || q.Quantity < 0 || behindRefund {
		return false
	}
	latestNs, ok := n.line.Latest(localNs)
	if !ok {
		return false
	}
	l, unit := q.Rule.Funnel, q.Rule.Unit
	if q.Result, ok = s.leases.Take(q.Key.Name, l, unit, q.Quantity, latestNs, localNs); ok {
		s.counts.leased.Add(1)
		return true
	}
	earliestNs, _ := n.line.Earliest(localNs)
	if q.Result, ok = s.recent.Denied(q.Key.Name, l, unit, q.Quantity, earliestNs, latestNs, localNs); ok {
		s.counts.prefiltered.Add(1)
	}
	return ok
}

// decidesKnown answers an item as known does: there may have been an answer to learn from since it came.
func (s *Store) decidesKnown(it *item, n *node, localNs int64) bool {
	if !s.knowsAny() || it.request().Quantity < 0 {
		return false
	}
	q := store.Request{Key: it.request().Key, Rule: it.request().Rule, Quantity: it.request().Quantity}
	if !s.known(&q, n, localNs, false) {
		return false
	}
	it.decided(q.Result, nil)
	return true
}

// effect is what may have become of a key's TAT. Of several effects the greatest counts.
type effect uint8

const (
	raised   effect = iota // it is what it was, or later
	lowered                // units may have been given back
	replaced               // it may have been set or deleted
)

// learn updates what is known of a TAT, by what a server has done to the key, or may have done, or by what
// was read of it. All that is known goes through here, before anybody has the answer. The key has its name
// on the server. st is its state afterwards, by the server's clock, as told by the reply to what was sent
// at a local time; nil if that is not known.
func (s *Store) learn(key string, e effect, st *limiter.State, sentNs int64) {
	if !s.knowsAny() {
		return
	}
	name := []byte(key[len(s.KeyPrefix):])
	if e == replaced {
		s.leases.Forget(name)
	}
	switch {
	case e != raised:
		s.recent.Forget(name, s.Now())
	case st == nil:
	case st.Kind == limiter.Funnel:
		s.recent.Renew(name, st.ExpiresNs, sentNs)
	case st.Kind == limiter.Reserving: // the TAT becomes less when a reservation expires
		s.recent.Forget(name, s.Now())
	}
}

// lent is units that are requested ahead, with a script.
type lent struct {
	ask   ahead.Ask
	limit funnel.Limit
}

// wantAhead adds a run to a group's script if units are to be taken ahead.
func (s *Store) wantAhead(g *group, w *runWriter, localNs int64) {
	g.ahead = lent{}
	q := g.taken.last.request()
	if s.leases == nil || q.Quantity <= 0 {
		return
	}
	ask := s.leases.Want(q.Key.Name, q.Rule.Funnel, g.count, localNs)
	if ask.Units <= 0 {
		return
	}
	g.ahead = lent{ask, q.Rule.Funnel}
	w.addRun(run{n: ask.Units, addsNs: g.ahead.limit.IntervalNs(), toleranceNs: g.ahead.limit.ToleranceNs()})
}

// granted notes how many of the units that were requested ahead the script has taken, from a TAT on. It returns the TAT behind
// them, and whether there were some for which there was no room.
func (s *Store) granted(g *group, fromNs, nowNs int64) (tatNs int64, refused bool) {
	a := &g.ahead
	if a.ask.Units == 0 {
		return fromNs, false
	}
	units := int64(0)
	if debtNs := funnel.Since(nowNs, fromNs); debtNs < a.limit.ToleranceNs() {
		units = min(a.ask.Units, int64((a.limit.ToleranceNs()-debtNs)/a.limit.IntervalNs()))
	}
	s.leases.Granted(g.taken.first.request().Key.Name, a.ask, nowNs, fromNs, units)
	return funnel.After(fromNs, a.limit.DebitNs(units)), units < a.ask.Units
}

// The script gives back what a lease has not used, as long as nobody has taken units behind it.
//
//go:embed cut.lua
var cutScript string

// giveBackNowAndThen gives back what was taken ahead for longer than it may be kept, and all of it at the end.
func (s *Store) giveBackNowAndThen() {
	defer s.working.end()
	tick := time.NewTicker(max(s.leases.MaxTime()/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.giveBack(s.leases.Return(s.Now()))
		case <-s.stop:
			s.giveBack(s.leases.ReturnAll(s.Now()))
			return
		}
	}
}

// giveBack sends what is given back, at most one pipeline a server at a time. What does not arrive drains.
func (s *Store) giveBack(cuts []ahead.Cut) {
	calls := map[*servers.Server][]*servers.Call{}
	for _, c := range cuts {
		key := s.KeyPrefix + c.Name
		if server, err := s.Pool.Of(context.Background(), key); err == nil {
			calls[server] = append(calls[server], &servers.Call{Script: s.scripts.cut, Keys: []string{key},
				Args: []any{strconv.FormatInt(c.EndNs, 10), c.ToNs / nsPerSec, c.ToNs % nsPerSec}})
		}
	}
	ctx, cancel := s.timeout(context.Background())
	defer cancel()
	for server, all := range calls {
		for len(all) > 0 {
			n := min(len(all), maxScripts)
			s.Pool.Send(ctx, server, all[:n], 0)
			all = all[n:]
		}
	}
	for _, c := range cuts {
		s.learn(s.KeyPrefix+c.Name, lowered, nil, 0)
	}
}
