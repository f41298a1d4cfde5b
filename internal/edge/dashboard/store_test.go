package dashboard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"cellserver/internal/store"
)

// TestStore: the page says how a store on other machines is, warns if it does not answer, and has its servers; without one it has
// nothing of it.
func TestStore(t *testing.T) {
	const sec = int64(time.Second)
	away := errors.New("192.0.2.1:6379: <refused>")
	for _, tt := range []struct {
		name    string
		st      store.Health
		en, zh  string
		warning string
	}{
		{"not asked", store.Health{}, "connecting", "连接中", ""},
		{"answers", store.Health{Asked: true, Masters: 1, Up: 1}, "answers", "正常", ""},
		{
			"one of three", store.Health{Asked: true, Masters: 3, Up: 2, Fault: away}, "2 of 3 servers of the store answer", "2 / 3 台存储服务器有响应",
			"2 of 3 servers of the store answer. Calls that it does not decide get an error.",
		},
		{
			"away", store.Health{Asked: true, Masters: 1, Fault: away, SinceNs: testNowNs - 5*sec, Policy: store.FallbackLocal}, "no answer for 5s", "无响应已 5s",
			"The store has not answered since 2023-11-14 22:13:15 UTC. Calls that it does not decide are decided in this server&#39;s memory, by its share of their limits.",
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
		body := get(t, p, "/?lang=en").Body.String()
		wantText(t, body, `<dt>Store</dt><dd><span class="value">`+tt.en+"</span></dd>", "redis-cluster://192.0.2.1:6379. Of 1,000 requests since the start, 600", "read of the key, and 7 left",
			`<th scope="row">192.0.2.1:6379</th><td>fails, paused</td><td>3</td><td>2</td>`, `id="chart-roundtrip"`, `id="chart-decidedhere"`)
		if strings.Contains(body, "<dt>Durability</dt>") {
			t.Errorf("%s: the page tells of the disk", tt.name)
		}
		if tt.warning != "" {
			wantText(t, body, `<p class="problem" role="alert">`+tt.warning+"</p>", "<code>192.0.2.1:6379: &lt;refused&gt;</code>")
		} else if strings.Contains(body, `class="problem" role="alert">Calls`) {
			t.Errorf("%s: the page warns", tt.name)
		}
		wantText(t, get(t, p, "/?lang=zh").Body.String(), `<dt>存储</dt><dd><span class="value">`+tt.zh+"</span></dd>")
	}
	p := New(testSource(nil))
	fill(p, 1)
	if body := get(t, p, "/?lang=en").Body.String(); strings.Contains(body, "store-heading") || strings.Contains(body, "chart-roundtrip") {
		t.Error("the page tells of a store in memory")
	}
}
