package dashboard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	g "maragu.dev/gomponents"

	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// fault is what is wrong now, such as that changes do not reach the disk.
type fault struct {
	alarm
	tile string // that is coloured
	// what and meaning stay the same while the fault lasts, as screen readers announce every change.
	what, meaning string
	cause         string // as reported by the system
	figure        string // in a sentence
	todo          string
}

// findFaults returns the faults, the most urgent first.
func (v *view) findFaults() (all []fault) {
	for _, found := range [][]fault{
		v.keeperFaults(), v.replicationFaults(), v.memoryFaults(), v.valueFaults(), v.clientFaults(), v.operatorFaults(), v.envoyFaults(),
	} {
		all = append(all, found...)
	}
	for i := range all {
		all[i].tile = cmp.Or(all[i].tile, all[i].row().tile)
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.alarm, b.alarm) })
	return all
}

// faultPart shows the most urgent fault.
func (v *view) faultPart() g.Node {
	if len(v.faults) == 0 {
		return nil
	}
	first, role := &v.faults[0], "status"
	if first.row().urgent == critical {
		role = "alert"
	}
	return el("div", class("alarm "+first.row().urgent.String()), first.node(v, first.figure, attr("role", role)))
}

// moreFaultsPart shows the other faults on demand. It has no figures, as those of many would make each update
// large.
func (v *view) moreFaultsPart() g.Node {
	if len(v.faults) < 2 {
		return nil
	}
	more := v.faults[1:]
	return el("details", class("alarm "+v.faults[0].row().urgent.String()), el("summary", text(fmt.Sprintf(v.t.MoreFaults, len(more)))),
		el("ul", g.Map(more, func(f fault) g.Node { return el("li", attr("data-k", f.row().alert), f.node(v, "")) })))
}

func (f *fault) node(v *view, figure string, announced ...g.Node) g.Node {
	r := f.row()
	link := "/runbook#" + anchorOf(r.runbook())
	if lang := v.query.Get("lang"); lang != "" {
		link = "/runbook?lang=" + v.t.Lang[:2] + "#" + anchorOf(r.runbook())
	}
	return g.Group{
		el("p", class("what"), attr("data-k", "what-"+r.alert), g.Group(announced), r.urgent.sign(v.t), text(v.t.Sentences(f.what, f.meaning))),
		g.If(f.cause != "", el("p", class("cause"), el("code", text(f.cause)), copyButton(v.t, f.cause))),
		el("p", text(v.t.Sentences(figure, f.todo)+" "), g.If(v.page.source.Runbook != "", el("a", attr("href", link), text(fmt.Sprintf(v.t.Runbook, r.runbook()))))),
	}
}

// lately returns a fault, with its figure, if its counter is above the threshold.
func (v *view) lately(f fault) []fault {
	if n := v.within(f.alarm); f.over(float64(n)) == calm {
		return nil
	}
	return []fault{v.counted(f)}
}

// counted returns a fault with the sum of its counter as its figure.
func (v *view) counted(f fault) fault {
	f.figure = fmt.Sprintf(v.t.Counted, words.Grouped(int64(v.within(f.alarm))), int(f.row().within.Minutes()))
	return f
}

// keeperFaults returns the faults of the store on other machines, or of the disk.
func (v *view) keeperFaults() []fault {
	if v.remote != nil {
		return v.storeFaults()
	}
	st, t := v.durable, v.t
	if st == nil {
		return nil
	}
	meaning := t.FaultForgets
	if st.Interval == 0 {
		meaning = t.FaultRefuses
	}
	lagNs, interval := v.page.source.Now()-st.SyncedNs, max(0, st.Interval)
	switch {
	case st.Fault != nil:
		return []fault{{alarm: notDurable, what: fmt.Sprintf(t.FaultSince, utc(st.FaultSinceNs)), meaning: meaning, cause: st.Fault.Error(), todo: t.DiskDo}}
	case st.SyncedNs != 0 && notDurable.over(float64(lagNs-5*int64(interval))/1e9) != calm:
		return []fault{{alarm: notDurable, what: t.DiskSlow, meaning: meaning, todo: t.DiskSlowDo}}
	case st.LastSaveErr != nil:
		return []fault{{alarm: snapshotFailing, what: t.SnapshotFails, meaning: t.SnapshotGrows, cause: st.LastSaveErr.Error(), todo: t.SnapshotDo}}
	}
	return nil
}

// storeFaults returns the fault that all or a part of the store does not answer, or not in time.
func (v *view) storeFaults() []fault {
	st, t := v.remote, v.t
	meaning := [...]string{store.FallbackError: t.StoreErrors, store.FallbackAllow: t.StoreAllows, store.FallbackDeny: t.StoreDenies, store.FallbackLocal: t.StoreLocal}[st.Policy]
	switch {
	case st.Away():
		return []fault{{alarm: storeAway, what: fmt.Sprintf(t.StoreDownSince, utc(st.SinceNs)), meaning: meaning, cause: errorText(st.Fault), todo: t.StoreDo}}
	case st.Fault != nil:
		what := fmt.Sprintf(t.StorePartly, st.Up, st.Masters) + t.Stop
		return []fault{{alarm: storeServerAway, what: what, meaning: meaning, cause: st.Fault.Error(), todo: t.StoreServerDo}}
	}
	r, all := storeFailing.row(), uint64(0)
	for _, p := range v.pointsWithin(r.within) {
		all += p.Since(func(s *history.Sample) uint64 { return s.StoreRequests })
	}
	if all == 0 || storeFailing.over(float64(v.within(storeFailing))/float64(all)) == calm {
		return nil
	}
	return []fault{v.counted(fault{alarm: storeFailing, what: fmt.Sprintf(t.StoreFails, words.Percent(r.above)), meaning: meaning, todo: t.StoreFailsDo})}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// memoryFaults returns at most one fault of the memory for limiters, and one of the process's.
func (v *view) memoryFaults() (all []fault) {
	s, t := v.last, v.t
	refused := v.lately(fault{alarm: keysRefused, what: t.MemoryFull, meaning: t.MemoryRefuses, todo: t.LimitersShortDo})
	evicted := v.lately(fault{alarm: keysEvicted, what: t.MemoryFull, meaning: t.MemoryEvicts, todo: t.LimitersShortDo})
	filled := float64(s.TableBytes) / math.Max(1, float64(s.MaxTableBytes))
	short := fault{alarm: memorySaturated, tile: "keymemory", meaning: t.MemoryShortMeans, todo: t.LimitersShortDo}
	full := v.keysHaveMaximum() && memoryFull.over(filled) != calm
	if full {
		short.alarm = memoryFull
	}
	short.what = fmt.Sprintf(t.LimitersShort, words.Percent(short.row().above))
	switch {
	case refused != nil:
		all = refused
	case evicted != nil:
		if all = evicted; full {
			all[0].alarm = memoryFull
		}
	case full || v.keysHaveMaximum() && memorySaturated.over(filled) != calm:
		all = append(all, short)
	}
	if v.remote == nil && s.MaxMemoryBytes > 0 && s.MemoryBytes > s.MaxMemoryBytes {
		all = append(all, fault{alarm: memorySaturated, tile: "memory", what: t.ProcessLarge, todo: t.ProcessDo})
	}
	return all
}

// clientFaults returns what is wrong with clients, or for them.
func (v *view) clientFaults() (all []fault) {
	s, t := v.last, v.t
	share := float64(s.Connections) / math.Max(1, float64(s.MaxConnections))
	all = v.lately(fault{alarm: connectionsRefused, what: t.CannotConnect, meaning: t.CannotConnectMeans, todo: t.CannotConnectDo})
	if all == nil && s.MaxConnections > 0 && connectionsSaturated.over(share) != calm {
		all = append(all, fault{
			alarm: connectionsSaturated, what: fmt.Sprintf(t.ConnectionsShort, words.Percent(connectionsSaturated.row().above)),
			meaning: t.ConnectionsShortMeans, todo: t.ConnectionsShortDo,
		})
	}
	if errorReplies.over(v.rate(errorReplies)) != calm {
		all = append(all, v.counted(fault{
			alarm: errorReplies, what: fmt.Sprintf(t.ErrorsMany, words.Rate.Text(errorReplies.row().above)), meaning: t.ErrorsMeans, todo: t.ErrorsDo,
		}))
	}
	if v.isSlow() {
		all = append(all, fault{
			alarm: latencyHigh, what: t.LatencyLong, meaning: fmt.Sprintf(t.LatencyMeans, words.DurationNs.Text(latencyHigh.row().above*1e9)), todo: t.LatencyDo,
		})
	}
	return all
}

// leastCallsPerSec is the rate of decisions below which the slowest hundredth is one call or two.
const leastCallsPerSec = 1

// isSlow reports whether P99 has been above the threshold for a minute, with enough calls.
func (v *view) isSlow() bool {
	newest, calls, slow := v.now(), 0, true
	if newest == nil || newest.AtNs-v.points[0].AtNs < int64(time.Minute) {
		return false
	}
	for _, p := range v.pointsWithin(time.Minute) {
		if p.Latency.OK {
			calls++
			slow = slow && isSlow(&p)
		}
	}
	return calls > 0 && slow
}

func isSlow(p *history.Point) bool {
	return p.Latency.OK && p.PerSec(history.Allowed)+p.PerSec(history.Limited) > leastCallsPerSec && latencyHigh.over(p.Latency.P99/1e9) != calm
}

// operatorFaults returns what is wrong with files, scripts, secrets, the log and the server itself.
func (v *view) operatorFaults() (all []fault) {
	t := v.t
	if v.last.FilesRefused {
		all = append(all, fault{alarm: limitsFileRefused, what: t.FileRefused, meaning: t.FileRefusedMeans, todo: t.FileRefusedDo})
	}
	if st := v.replication; st != nil && len(st.Differing) > 0 {
		all = append(all, fault{
			alarm: limitsDiffer, what: t.LimitsDiffer, meaning: t.LimitsDifferMeans,
			cause: replicas.SomeNames(st.Differing), todo: t.LimitsDifferDo,
		})
	}
	for _, f := range []fault{
		{alarm: newKeysRefused, what: t.NewKeys, meaning: t.NewKeysMeans, todo: t.NewKeysDo},
		{alarm: scriptsEnded, what: t.ScriptsEnd, meaning: t.ScriptsEndMeans, todo: t.ScriptsEndDo},
		{alarm: handoverTimedOut, what: t.HandoverLate, meaning: t.HandoverForgets, todo: t.HandoverDo},
		{alarm: panicked, what: t.Panics, meaning: t.PanicsMeans, todo: t.PanicsDo},
		{alarm: authFailures, what: t.Passwords, meaning: t.PasswordsMeans, todo: t.PasswordsDo},
		{alarm: logLinesLost, what: t.LogLost, meaning: t.LogLostMeans, todo: t.LogLostDo},
	} {
		all = append(all, v.lately(f)...)
	}
	return all
}

func utc(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }

// lastErrorPart shows the last error reply within the history.
func (v *view) lastErrorPart() g.Node {
	last, t := &v.lastError, v.t
	age := time.Duration(v.page.source.Now() - v.erredNs)
	if v.erredNs == 0 || age > history.Span {
		return nil
	}
	by := last.Client
	if last.Name != "" {
		by += " (" + last.Name + ")"
	}
	by += " · " + fmt.Sprintf(t.Ago, t.Span(age))
	return el("div", class("last"),
		el("p", text(t.LastError+t.Colon), el("code", text(last.Text))),
		el("p", g.If(last.Command != "", g.Group{el("code", text(last.Command)), text(" · ")}), text(by)),
	)
}

// valueFaults returns that values were evicted or refused lately, or that there will soon be no room for
// more.
func (v *view) valueFaults() []fault {
	values, t := &v.last.Values, v.t
	all := v.lately(fault{alarm: valuesRefused, what: t.ValuesFull, meaning: t.ValuesRefuses, todo: t.ValuesRefusedDo})
	if all == nil {
		all = v.lately(fault{alarm: valuesEvicted, what: t.ValuesFull, meaning: t.ValuesEvicts, todo: t.ValuesShortDo})
	}
	if all == nil && v.hasValues() && values.MaxBytes > 0 && memorySaturated.over(float64(values.Bytes)/float64(values.MaxBytes)) != calm {
		what := fmt.Sprintf(t.ValuesShort, words.Percent(memorySaturated.row().above))
		return []fault{{alarm: memorySaturated, tile: "valuememory", what: what, meaning: t.MemoryShortMeans, todo: t.ValuesShortDo}}
	}
	return all
}

// within sums up an alarm's counter over its time before the newest point.
func (v *view) within(a alarm) (n uint64) {
	r := a.row()
	for _, p := range v.pointsWithin(r.within) {
		n += p.Since(r.count)
	}
	return n
}

// pointsWithin returns the points within a time before the newest one, and it.
func (v *view) pointsWithin(span time.Duration) []history.Point {
	from := len(v.points)
	for from > 0 && v.points[from-1].AtNs > v.now().AtNs-int64(span) {
		from--
	}
	return v.points[from:]
}

// rate returns an alarm's counter per second within its time, or since the first point, at least a minute.
func (v *view) rate(a alarm) float64 {
	if len(v.points) == 0 {
		return 0
	}
	known := time.Duration(v.now().AtNs-v.points[0].AtNs) + history.Interval
	return float64(v.within(a)) / max(time.Minute, min(a.row().within, known)).Seconds()
}
