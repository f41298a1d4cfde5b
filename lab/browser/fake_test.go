package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
)

// fake is a server with known figures: they grow, a disk is at fault, and some hot keys are hostile.
type fake struct {
	url   string
	calls atomic.Uint64 // samples taken
	gone  atomic.Bool   // it hangs up instead of answering
	page  atomic.Pointer[http.Handler]

	steady atomic.Bool // its hot keys keep their order
}

func fakeServer(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	source := f.source()
	useLimits(t, &source, newRegistry(t, apiLimit))
	f.listen(t, withHistory(f.run(t, source)))
	return f
}

// emptyServer is a server without calls.
func emptyServer(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	source := f.source()
	source.Sample = func() history.Sample { return history.Sample{MemoryBytes: 9 << 20} }
	source.Latency = histogram.NewScale().NewDurations
	source.Persistence = nil
	source.Top = func(topkeys.Ranking, int) []topkeys.Entry { return nil }
	f.listen(t, f.run(t, source))
	return f
}

// run takes the page's samples until the test ends.
func (f *fake) run(t *testing.T, source dashboard.Source) *dashboard.Page {
	t.Helper()
	p := dashboard.New(source)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		p.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return p
}

func (f *fake) listen(t *testing.T, page http.Handler) {
	t.Helper()
	f.page.Store(&page)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.gone.Load() {
			panic(http.ErrAbortHandler) // which closes the connection
		}
		(*f.page.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	f.url = web.URL + "/"
}

// restart begins anew, without a history.
func (f *fake) restart(t *testing.T) {
	source, began := f.source(), time.Now()
	source.Facts = func() dashboard.Facts { return dashboard.Facts{Host: "fake", StartedNs: began.UnixNano()} }
	var page http.Handler = f.run(t, source)
	f.page.Store(&page)
}

func (f *fake) source() dashboard.Source {
	began := time.Now()
	scale := histogram.NewScale()
	durations := scale.NewDurations() // used by Run only
	return dashboard.Source{
		Version: "test",
		Facts: func() dashboard.Facts {
			return dashboard.Facts{Host: "fake", Client: "redis-cli -p 6380", StartedNs: began.Add(-time.Hour).UnixNano(), Warnings: []dashboard.Warning{dashboard.NoPassword}}
		},
		Source: ask.Source{
			Now:         func() int64 { return time.Now().UnixNano() },
			State:       statesOf(began),
			Limits:      func() []*namedlimit.Limit { return nil },
			Calendars:   calendar.NewSet(&calendar.Wall{}, zones.Load),
			Databases:   16,
			MaxKeyBytes: 4096,
		},
		Refused: func() []dashboard.Refusal { return nil },
		Sample: func() history.Sample {
			n := f.calls.Add(1)
			return history.Sample{Allowed: n * n * 1000, Limited: n * 100, Connections: 12, Keys: int(n), MemoryBytes: n << 20, Errors: 200 * n, OwnErrors: 200 * n}
		},
		Persistence: func() store.Durability {
			fault := errors.New(hostile + strings.Repeat("/directory", 20) + "/log-1: no space left on device")
			return store.Durability{Interval: time.Second, Fault: fault, FaultSinceNs: began.UnixNano()}
		},
		Latency: func() histogram.Durations {
			durations.Observe(1000, 1000)
			durations.Observe(1_000_000, 10)
			sum := scale.NewDurations()
			sum.Add(durations)
			return sum
		},
		Top: f.top,
	}
}

const (
	inventedPoints = 440
	stepMs         = 2000
)

// withHistory invents the points of the first answer, so that no test waits for them: almost 15 minutes, in
// which connections count the points and every other column is a multiple. Points 200 to 219 have no
// latencies.
func withHistory(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/live.json" {
			page.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		recorded := httptest.NewRecorder()
		page.ServeHTTP(recorded, r)
		var answer map[string]json.RawMessage
		if err := json.Unmarshal(recorded.Body.Bytes(), &answer); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if string(answer["whole"]) == "true" {
			answer["points"] = inventPoints(time.Now().UnixMilli() - stepMs)
		}
		w.Header().Set("Content-Security-Policy", recorded.Header().Get("Content-Security-Policy"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

func inventPoints(endMs int64) json.RawMessage {
	columns := map[string][]any{"t": {endMs - (inventedPoints-1)*stepMs}}
	for name, each := range map[string]int{
		"connections": 1, "keys": 10, "memory": 1 << 20, "allowed": 1_000_000, "limited": 500_000, "p50": 1000, "p99": 2000, "p999": 4000,
		"written": 1000, "sync": 1_000_000,
	} {
		columns[name] = []any{each}
		for i := 1; i < inventedPoints; i++ {
			difference := any(each)
			if name[0] == 'p' && i >= 200 && i < 220 {
				difference = nil
			} else if name[0] == 'p' && i == 220 {
				difference = 21 * each
			}
			columns[name] = append(columns[name], difference)
		}
	}
	for range inventedPoints - 1 {
		columns["t"] = append(columns["t"], stepMs)
	}
	encoded, _ := json.Marshal(columns) // numbers cannot fail
	return encoded
}
