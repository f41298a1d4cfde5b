package dashboard

import (
	"errors"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestStore checks the state, warnings and servers of a store on other machines, and that a store in memory
// shows none.
func TestStore(t *testing.T) {
	const sec = int64(time.Second)
	refused := errors.New("192.0.2.1:6379: <refused>")
	for _, tt := range []struct {
		name    string
		st      store.Health
		en, zh  string
		warning string
	}{
		{"not asked", store.Health{}, "connecting", "连接中", ""},
		{"answers", store.Health{Asked: true, Masters: 1, Up: 1}, "answers", "正常", ""},
		{
			"one of three", store.Health{Asked: true, Masters: 3, Up: 2, Fault: refused}, "2 of 3 servers of the store answer", "2 / 3 台存储服务器有响应",
			"2 of 3 servers of the store answer. Calls it cannot decide get an error.",
		},
		{
			"no answer", store.Health{Asked: true, Masters: 1, Fault: refused, SinceNs: testNowNs - 5*sec, Policy: store.FallbackLocal}, "no answer for 5s", "无响应已 5s",
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
		wantText(t, page, `<dt>Store</dt><dd><span class="value">`+tt.en+"</span></dd>", "redis-cluster://192.0.2.1:6379. Of 1,000 requests since the start, 600", "by a state just read, and 7 left",
			`<th scope="row">192.0.2.1:6379</th><td>fails, paused</td><td>3</td><td>2</td>`, `id="chart-roundtrip"`, `id="chart-decidedhere"`)
		lacksText(t, page, "<dt>Durability</dt>")
		if tt.warning != "" {
			wantText(t, page, `<p class="problem" role="alert">`+tt.warning+"</p>", "<code>192.0.2.1:6379: &lt;refused&gt;</code>")
		} else {
			lacksText(t, page, `class="problem" role="alert">Calls`)
		}
		wantText(t, body(t, p, "lang=zh"), `<dt>存储</dt><dd><span class="value">`+tt.zh+"</span></dd>")
	}
	p := New(testSource(nil))
	fill(p, 1)
	lacksText(t, body(t, p, "lang=en"), "store-heading", "chart-roundtrip")
}
