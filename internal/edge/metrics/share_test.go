package metrics

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellserver/internal/store"
)

// TestPagesShareTime: pages and scrapes are computed one at a time, and while others wait they rest for as
// long as they have worked.
func TestPagesShareTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, work = 24, 10 * time.Millisecond
		var now, most atomic.Int64
		computes := func(http.ResponseWriter, *http.Request) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(work)
			now.Add(-1)
		}
		h := newHarness(func(c *Config) { c.Page = http.HandlerFunc(computes) })
		began := time.Now()
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				if answer := h.get([]string{"/", "/live.json", "/metrics"}[i%3]); answer.Code != http.StatusOK {
					t.Errorf("got %d", answer.Code)
				}
			})
		}
		all.Wait()
		// Scrapes take no time of this clock. The last page may have nobody behind it.
		const pages = clients * 2 / 3
		if took := time.Since(began); most.Load() != 1 || took < (2*pages-1)*work || took > 2*pages*work {
			t.Errorf("%d at once; %d pages of %s took %s", most.Load(), pages, work, took)
		}
		began = time.Now()
		h.get("/")
		h.get("/")
		if took := time.Since(began); took > 2*work+work {
			t.Errorf("two after each other took %s", took)
		}
	})
}

// watchedStore counts how often its figures are asked for.
type watchedStore struct {
	store.Store
	asked *atomic.Int64
}

func (s watchedStore) UpdateStats(st *store.Stats) {
	s.asked.Add(1)
	s.Store.UpdateStats(st)
}

// TestStrangersComputeNothing: a scrape or page without the token collects no figures.
func TestStrangersComputeNothing(t *testing.T) {
	var asked, pages atomic.Int64
	h := newHarness(func(c *Config) {
		c.Store = watchedStore{c.Store, &asked}
		c.Page = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { pages.Add(1) })
		c.Access.Set("secret")
	})
	before := asked.Load()
	ask := func(path, token string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		h.http.ServeHTTP(answer, r)
		return answer.Code
	}
	for _, token := range []string{"", "wrong"} {
		for _, path := range []string{"/metrics", "/", "/live.json", "/runbook"} {
			if code := ask(path, token); code != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, token, code)
			}
		}
	}
	if asked.Load() != before || pages.Load() != 0 {
		t.Errorf("strangers had figures collected %d times, and %d pages made", asked.Load()-before, pages.Load())
	}
	if code := ask("/metrics", "secret"); code != http.StatusOK || asked.Load() == before {
		t.Errorf("with the token: %d, %d", code, asked.Load())
	}
}
