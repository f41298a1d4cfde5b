package replication

import (
	"time"

	"cellserver/internal/store/replicas"
)

// step is one of the things that can happen.
type step struct {
	name string
	can  func(m *model) bool
	do   func(m *model)
}

func always(*model) bool { return true }

func isLinked(m *model) bool { return m.up != nil }

var (
	chargeA = step{"charge a", func(m *model) bool { return !m.a.isDown.Load() }, func(m *model) {
		if _, ok := m.a.charge(1); ok {
			m.charged++
		}
	}}
	round = step{"round", func(m *model) bool { return !m.a.isDown.Load() && m.a.node.role.isLeader() }, func(m *model) {
		m.gathered = m.charged
		m.a.node.Round()
	}}
	// sends has b acknowledge what it has applied, and a send more.
	sends = step{"send", func(m *model) bool { return m.up != nil && !m.isSent }, func(m *model) {
		_ = m.a.node.Next(m.client, m.up.received, func() {})
		clockNs, frames, err := m.a.node.Take(m.client)
		if err != nil {
			m.fail("a does not send: %v", err)
		}
		m.inFlight, m.sentNs, m.isSent, m.sent = frames, clockNs, true, m.gathered
	}}
	applies = step{"apply", func(m *model) bool { return m.up != nil && m.isSent }, func(m *model) {
		if err := m.up.take(m.sentNs, m.inFlight); err != nil {
			m.fail("b does not apply: %v", err)
		}
		m.b.node.setAsked(true)
		m.isSent, m.applied, m.seenNs = false, m.sent, max(m.seenNs, m.sentNs)
	}}
	wait = step{"wait", func(m *model) bool { return m.up != nil && m.waiting < 0 }, func(m *model) {
		m.waiting, m.waitDone = m.charged, make(chan struct{})
		m.a.node.Wait(1, func() { close(m.waitDone) })
	}}
	crash = step{"crash a", func(m *model) bool { return m.up != nil }, func(m *model) {
		m.a.isDown.Store(true)
		m.cut()
	}}
	cut = step{"cut all links", isLinked, func(m *model) {
		m.isApart.Store(true)
		m.cut()
	}}
	// silence is a cut that a does not see.
	silence = step{"lose all packets", isLinked, func(m *model) {
		m.isApart.Store(true)
		m.up, m.isSent, m.silentNs = nil, false, time.Now().UnixNano()
		m.b.node.linkDown(errCut)
	}}
	drop = step{"end the connection", isLinked, func(m *model) { m.cut() }}
	// promote is of a replica without a link.
	promote = step{"promote b", func(m *model) bool { return m.up == nil && m.branch < 0 && !m.handed }, func(m *model) {
		_ = m.b.node.Lead()
		m.settle()
		if m.b.node.Status().HandingOver { // a is silent too briefly yet
			m.sleep(replicas.LeastBound + tick)
		}
		if got := m.b.used(); got != m.applied {
			m.fail("b leads with %d units; it had %d, of %d", got, m.applied, m.charged)
		}
	}}
	// promoteInTime is Sentinel's: a has been silent for so long.
	promoteInTime = step{"promote b in time", func(m *model) bool {
		return promote.can(m) && time.Now().UnixNano()-m.silentNs >= int64(downAfter)
	}, promote.do}
	chargeB = step{"charge b", func(m *model) bool { return m.branch >= 0 }, func(m *model) {
		if _, ok := m.b.charge(1); !ok {
			m.fail("b does not charge")
		}
		m.chargedB++
	}}
	roundB = step{"round b", func(m *model) bool { return m.branch >= 0 }, func(m *model) { m.b.node.Round() }}
	// comeBack has the old leader follow.
	comeBack = step{"a follows b", func(m *model) bool {
		return m.branch >= 0 && !m.a.isDown.Load() && m.a.node.role.leader == (replicas.Address{})
	}, func(m *model) {
		m.isApart.Store(false)
		m.a.node.Follow(m.b.at)
		m.settle()
		m.followNew()
	}}
	pass = step{"time passes", always, func(m *model) { m.sleep(tick) }}
	// handOver tells b to lead while its link is up.
	handOver = step{"hand over", func(m *model) bool { return m.up != nil && !m.handed }, func(m *model) {
		m.handed = true
		_ = m.b.node.Lead()
		m.wasLinked = m.b.node.Status().HandingOver
	}}
)
