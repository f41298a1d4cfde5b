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
		wantText(t, page, `<dt>Durability</dt><dd><span class="value">`+tt.en+"</span></dd>")
		if tt.warning != "" {
			wantText(t, page, `<p class="problem" role="alert">`+tt.warning+"</p>", "<code>write &lt;log-1&gt;: no space left on device</code>")
		} else {
			lacksText(t, page, "reached the disk")
		}
		wantText(t, body(t, p, "lang=zh"), `<dt>持久化</dt><dd><span class="value">`+tt.zh+"</span></dd>")
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
