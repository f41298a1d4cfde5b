package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

const testNowNs = 1_700_000_000_000_000_000

// testSource is an idle server whose keys have these TATs.
func testSource(tats map[string]int64) Source {
	return Source{
		Version: "1.2.3",
		Facts: func() Facts {
			return Facts{Host: "throttle-1", Listens: []Listener{{"tcp", "127.0.0.1:6380"}}, Client: "redis-cli -p 6380", StartedNs: testNowNs - 3_720_000_000_000}
		},
		Source: ask.Source{
			Now:         func() int64 { return testNowNs },
			State:       testKeys(tats).State,
			Limits:      func() []*namedlimit.Limit { return nil },
			Calendars:   calendar.NewSet(&calendar.Wall{}, zones.Load),
			Databases:   16,
			MaxKeyBytes: 100,
		},
		Sample:  func() history.Sample { return history.Sample{} },
		Refused: func() []Refusal { return nil },
		Latency: histogram.NewScale().NewDurations,
		Top:     func(topkeys.Ranking, int) []topkeys.Entry { return nil },
	}
}

type testKeys map[string]int64

func (k testKeys) State(nowNs int64, key store.Key) (s limiter.State, ok bool, err error) {
	if key.DB != 0 {
		return limiter.State{}, false, nil
	}
	tatNs := k[string(key.Name)]
	return limiter.State{ExpiresNs: tatNs}, tatNs > nowNs, nil
}

// fill gives a page a history of n samples, two seconds apart.
func fill(p *Page, n int) {
	scale := histogram.NewScale()
	durations, sum := scale.NewDurations(), scale.NewDurations()
	durations.Observe(900, 99)
	durations.Observe(1900, 1)
	for i := range n + 1 {
		p.history.Add(testNowNs+int64(i)*int64(history.Interval), history.Sample{
			Allowed: uint64(20 * i), Limited: uint64(2 * i), Connections: i, Keys: 1000 * i, MemoryBytes: uint64(i) << 20,
		}, sum)
		next := scale.NewDurations()
		next.Add(sum)
		next.Add(durations)
		sum = next
	}
}

const noFault = `<div id="fault" data-live></div>`

// announced is a fault's first line, with the role of its urgency.
func announced(a alarm, text string) string {
	r, role, word := a.row(), "status", "Warning"
	if r.urgent == critical {
		role, word = "alert", "Critical"
	}
	return `<p class="what" data-k="what-` + r.alert + `" role="` + role + `"><span class="sign ` + r.urgent.String() + `" role="img" aria-label="` + word + `"></span>` + text
}

// tileOf is the beginning of a coloured tile.
func tileOf(id string, u urgency, name, value string) string {
	word := map[urgency]string{warning: "Warning", critical: "Critical"}[u]
	return `<div class="tile ` + u.String() + `" data-k="` + id + `"><dt><span class="sign ` + u.String() + `" role="img" aria-label="` + word + `"></span>` +
		name + `</dt><dd><span class="value">` + value
}

func newRequest(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, nil) }

func get(t testing.TB, p *Page, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := newRequest(target)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// body returns the page for a query.
func body(t *testing.T, p *Page, query string) string {
	t.Helper()
	return get(t, p, "/?"+query).Body.String()
}

func wantText(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
}

func lacksText(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
}

// noMarkup expects that no hostile text became markup.
func noMarkup(t *testing.T, body string) {
	t.Helper()
	if strings.Contains(body, "<img") || strings.Count(body, "<script>") != 1 {
		t.Error("a text became markup")
	}
}

// addSample adds a sample at n intervals after testNowNs.
func (p *Page) addSample(n int, s history.Sample) {
	p.history.Add(testNowNs+int64(n)*int64(history.Interval), s, p.source.Latency())
}
