package dashboard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestDurability checks the summary of persistence, and its warning, in both languages.
func TestDurability(t *testing.T) {
	const sec = int64(time.Second)
	full := errors.New("write <log-1>: no space left on device")
	for _, tt := range []struct {
		name    string
		st      store.Durability
		en, zh  string
		warning string
	}{
		{"an interval", store.Durability{Interval: time.Second}, "every 1\u00a0s", "每 1\u00a0s", ""},
		{"each reply", store.Durability{}, "before each reply", "每次返回之前", ""},
		{"no syncs", store.Durability{Interval: store.NoSync}, "left to the system", "由操作系统决定", ""},
		{"begins to load", store.Durability{Loading: true}, "loading, 0\u00a0%", "加载中，0\u00a0%", ""},
		{"loads", store.Durability{Loading: true, LoadBytes: 400, LoadedBytes: 100}, "loading, 25\u00a0%", "加载中，25\u00a0%", ""},
		{"loads more than there was", store.Durability{Loading: true, LoadBytes: 400, LoadedBytes: 500}, "loading, 100\u00a0%", "加载中，100\u00a0%", ""},
		{
			"a fault", store.Durability{Interval: time.Second, Fault: full, FaultSinceNs: testNowNs - 125*sec}, "fault for 2m5s", "故障已持续 2m5s",
			"Changes have not reached the disk since 2023-11-14 22:11:15 UTC. Decisions continue, but these changes are lost if the server stops now.",
		},
		{
			"a fault, and each reply", store.Durability{Fault: full, FaultSinceNs: testNowNs}, "fault for 0s", "故障已持续 0s",
			"Changes have not reached the disk since 2023-11-14 22:13:20 UTC. Calls that would change a key are refused with -MISCONF.",
		},
	} {
		s := testSource(nil)
		s.Persistence = func() store.Durability { return tt.st }
		p := New(s)
		fill(p, 1)
		page := body(t, p, "lang=en")
		wantText(t, page, `Durability</dt><dd><span class="value">`+tt.en+"</span></dd>")
		if tt.warning != "" {
			wantText(t, page, announced(notDurable, tt.warning+"</p>"), tileOf("durability", critical, "Durability", "fault for"), "<code>write &lt;log-1&gt;: no space left on device</code>")
		} else {
			lacksText(t, page, "reached the disk")
		}
		wantText(t, body(t, p, "lang=zh"), `持久化</dt><dd><span class="value">`+tt.zh+"</span></dd>")
	}
}

// TestDurabilityPanel checks the details, and that they are absent without a data directory.
func TestDurabilityPanel(t *testing.T) {
	s := testSource(nil)
	st := store.Durability{
		Interval: time.Second, LastSyncTookNs: 1_500_000, WrittenBytes: 3 << 20, LogBytes: 2 << 20, SnapshotBytes: 1 << 20, WaitingReplies: 7, Faults: 2,
		LastSaveNs: testNowNs - 125*int64(time.Second),
	}
	s.Persistence = func() store.Durability { return st }
	p := New(s)
	wantText(t, body(t, p, "lang=en"), "<dt>Last sync took</dt><dd>1.50\u00a0ms</dd>", "<dt>Written since the start</dt><dd>3\u00a0MiB</dd>",
		"<dt>Log</dt><dd>2\u00a0MiB</dd>", "<dt>Snapshot</dt><dd>1\u00a0MiB</dd>", "<dt>Last snapshot</dt><dd>2 min ago</dd>", "<dt>Replies waiting for a sync</dt><dd>7</dd>",
		"<dt>Faults since the start</dt><dd>2</dd>", `id="chart-written"`, `id="chart-sync"`)
	st.Saving = true
	wantText(t, body(t, p, "lang=zh"), "<dt>最近一次快照</dt><dd>正在写入</dd>")
	st.Saving, st.LastSaveErr = false, errors.New("<full>")
	wantText(t, body(t, p, "lang=en"), "<dd>failed: &lt;full&gt;</dd>")

	p = New(testSource(nil))
	fill(p, 1)
	page := body(t, p, "lang=en")
	wantText(t, page, "<dt>Durability</dt><dd>off</dd>")
	lacksText(t, page, "durability-heading", "chart-written")
	if n := strings.Count(page, "<dt>Durability</dt>"); n != 1 {
		t.Errorf("got %d entries for durability, want 1", n)
	}
}

// TestStore checks the state, warnings and servers of a store on other machines, and that a store in memory
// shows none.
func TestStore(t *testing.T) {
	const sec = int64(time.Second)
	refused := errors.New("192.0.2.1:6379: <refused>")
	for _, tt := range []struct {
		name    string
		st      store.Health
		en, zh  string
		alarm   alarm
		warning string
	}{
		{"not asked", store.Health{}, "connecting", "连接中", alarms, ""},
		{"answers", store.Health{Asked: true, Masters: 1, Up: 1}, "answers", "正常", alarms, ""},
		{
			"one of three", store.Health{Asked: true, Masters: 3, Up: 2, Fault: refused}, "2 of 3 servers of the store answer", "2 / 3 台存储服务器有响应", storeServerAway,
			"2 of 3 servers of the store answer. Calls it cannot decide get an error.",
		},
		{
			"no answer", store.Health{Asked: true, Masters: 1, Fault: refused, SinceNs: testNowNs - 5*sec, Policy: store.FallbackLocal}, "no answer for 5s", "无响应已 5s", storeAway,
			"The store has not answered since 2023-11-14 22:13:15 UTC. Calls it cannot decide are decided in this server&#39;s memory, by its share of their limits.",
		},
	} {
		tt.st.Store = "redis-cluster://192.0.2.1:6379"
		tt.st.Stats = store.RemoteStats{
			Requests: 1000, Asked: 600, Scripts: 300, Prefiltered: 200, Policy: map[store.Fallback]store.Decided{store.FallbackLocal: {Allowed: 4, Limited: 3}},
			Servers: []store.ServerStats{{Addr: "192.0.2.1:6379", Queued: 3, InFlight: 2, RoundTripNs: 1_500_000, Circuit: "open"}},
		}
		s := testSource(nil)
		s.Remote = func() store.Health { return tt.st }
		p := New(s)
		fill(p, 1)
		page := body(t, p, "lang=en")
		wantText(t, page, `Store</dt><dd><span class="value">`+tt.en+"</span></dd>", "redis-cluster://192.0.2.1:6379. Of 1,000 requests since the start, 600", "by a state just read, and 7 left",
			`<th scope="row">192.0.2.1:6379</th><td>fails, paused</td><td>3</td><td>2</td>`, `id="chart-roundtrip"`, `id="chart-decidedhere"`)
		lacksText(t, page, "<dt>Durability</dt>")
		if tt.warning != "" {
			wantText(t, page, announced(tt.alarm, tt.warning+"</p>"), "<code>192.0.2.1:6379: &lt;refused&gt;</code>")
		} else {
			wantText(t, page, noFault)
		}
		wantText(t, body(t, p, "lang=zh"), `存储</dt><dd><span class="value">`+tt.zh+"</span></dd>")
	}
	p := New(testSource(nil))
	fill(p, 1)
	lacksText(t, body(t, p, "lang=en"), "store-heading", "chart-roundtrip")
}
