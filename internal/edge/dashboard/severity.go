package dashboard

import (
	"cmp"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
)

// urgency is how soon a fault needs somebody, as an alert's label severity.
type urgency uint8

const (
	calm urgency = iota
	warning
	critical
)

// String returns a class of the style sheet.
func (u urgency) String() string { return [...]string{"", "warning", "critical"}[u] }

// sign is shown beside the colour of an urgency.
func (u urgency) sign(t *words.Texts) g.Node {
	if u == calm {
		return nil
	}
	return el("span", class("sign "+u.String()), attr("role", "img"), attr("aria-label", [...]string{"", t.Warning, t.Critical}[u]))
}

// alarm is a kind of fault. The most urgent comes first, then the one of the largest consequence.
type alarm uint8

const (
	notDurable alarm = iota
	tooFewReplicas
	peerLeads
	storeAway
	storeServerAway
	connectionsRefused
	keysRefused
	valuesRefused
	memoryFull
	storeFailing
	replicaLinkDown
	replicationLag
	errorReplies
	keysEvicted
	valuesEvicted
	latencyHigh
	memorySaturated
	connectionsSaturated
	newKeysRefused
	scriptsEnded
	snapshotFailing
	limitsFileRefused
	xdsRejected
	xdsDisconnected
	limitsDiffer
	handoverTimedOut
	panicked
	authFailures
	logLinesLost
	alarms
)

// severityRow has an alarm's threshold. Most alarms are alerts of deploy/prometheus, with the same threshold;
// an alert waits (its for), the page only for latency.
type severityRow struct {
	alert  string // without the prefix Cellserver
	urgent urgency
	above  float64         // the threshold, in the unit of the alert
	count  history.Counter // nil for what has a value now
	within time.Duration   // over which the counter is summed
	tile   string          // that is coloured, if it is shown
	// section of the runbook for what has no alert of its own
	section string
}

func (a alarm) row() severityRow { return severityRows()[a] }

func severityRows() [alarms]severityRow {
	return [alarms]severityRow{
		notDurable:           {alert: "NotDurable", urgent: critical, above: 10, tile: "durability"},
		tooFewReplicas:       {alert: "TooFewReplicas", urgent: critical, above: 3, count: func(s *history.Sample) uint64 { return s.ChangesRefused }, within: 5 * time.Minute, tile: "replicas"},
		peerLeads:            {alert: "PeerLeads", urgent: critical},
		storeAway:            {alert: "StoreAway", urgent: critical, tile: "store"},
		storeServerAway:      {alert: "StoreServerAway", urgent: critical, tile: "store"},
		connectionsRefused:   {alert: "ConnectionsRefused", urgent: critical, above: 10, count: func(s *history.Sample) uint64 { return s.ConnectionsRefused }, within: 5 * time.Minute, tile: "connections"},
		keysRefused:          {alert: "KeysRefused", urgent: critical, count: func(s *history.Sample) uint64 { return s.Refused }, within: 5 * time.Minute, tile: "keymemory"},
		valuesRefused:        {alert: "ValuesRefused", urgent: critical, count: func(s *history.Sample) uint64 { return s.Values.Refused }, within: 5 * time.Minute, tile: "valuememory"},
		memoryFull:           {alert: "MemoryFull", urgent: critical, above: 0.9, tile: "keymemory"},
		storeFailing:         {alert: "StoreFailing", urgent: warning, above: 0.01, count: func(s *history.Sample) uint64 { return s.ByPolicy }, within: 5 * time.Minute, tile: "store"},
		replicaLinkDown:      {alert: "ReplicaLinkDown", urgent: warning, tile: "link"},
		replicationLag:       {alert: "ReplicationLag", urgent: warning, above: 10, tile: "lag"},
		errorReplies:         {alert: "ErrorReplies", urgent: warning, above: 1, count: func(s *history.Sample) uint64 { return s.OwnErrors }, within: 5 * time.Minute},
		keysEvicted:          {alert: "KeysEvicted", urgent: warning, count: func(s *history.Sample) uint64 { return s.Evicted }, within: 5 * time.Minute, tile: "keymemory"},
		valuesEvicted:        {alert: "ValuesEvicted", urgent: warning, count: func(s *history.Sample) uint64 { return s.Values.Evicted }, within: 5 * time.Minute, tile: "valuememory"},
		latencyHigh:          {alert: "LatencyHigh", urgent: warning, above: 0.01, tile: "p99"},
		memorySaturated:      {alert: "MemorySaturated", urgent: warning, above: 0.75},
		connectionsSaturated: {alert: "ConnectionsSaturated", urgent: warning, above: 0.8, tile: "connections"},
		newKeysRefused:       {alert: "NewKeysRefused", urgent: warning, count: func(s *history.Sample) uint64 { return s.NewKeysRefused }, within: 5 * time.Minute, section: "ErrorReplies"},
		scriptsEnded:         {alert: "ScriptsEnded", urgent: warning, count: func(s *history.Sample) uint64 { return s.ScriptsEnded }, within: 5 * time.Minute, section: "ErrorReplies"},
		snapshotFailing:      {alert: "SnapshotFailing", urgent: warning, tile: "durability"},
		limitsFileRefused:    {alert: "LimitsFileRefused", urgent: warning},
		xdsRejected:          {alert: "XDSRejected", urgent: warning},
		xdsDisconnected:      {alert: "XDSDisconnected", urgent: warning},
		limitsDiffer:         {alert: "LimitsDiffer", urgent: warning},
		handoverTimedOut:     {alert: "HandoverTimedOut", urgent: warning, count: func(s *history.Sample) uint64 { return s.HandoversTimedOut }, within: 15 * time.Minute},
		panicked:             {alert: "Panicked", urgent: warning, count: func(s *history.Sample) uint64 { return s.Panics }, within: 15 * time.Minute},
		authFailures:         {alert: "AuthFailures", urgent: warning, above: 20, count: func(s *history.Sample) uint64 { return s.WrongPasswords }, within: 5 * time.Minute},
		logLinesLost:         {alert: "LogLinesLost", urgent: warning, count: func(s *history.Sample) uint64 { return s.LogLinesLost }, within: 15 * time.Minute},
	}
}

// runbook is the title of the section that says what to do.
func (r severityRow) runbook() string { return "Cellserver" + cmp.Or(r.section, r.alert) }

// over returns an alarm's urgency if a value is above its threshold.
func (a alarm) over(value float64) urgency {
	if r := a.row(); value > r.above {
		return r.urgent
	}
	return calm
}

// urgencyOf returns the urgency of a tile: that of the worst of its faults.
func (v *view) urgencyOf(tile string) urgency {
	worst := calm
	for i := range v.faults {
		if f := &v.faults[i]; f.tile == tile {
			worst = max(worst, f.alarm.row().urgent)
		}
	}
	return worst
}
