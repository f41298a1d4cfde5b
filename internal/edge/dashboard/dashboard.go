// Package dashboard draws and serves the live page: figures and charts of its history, hot keys, named
// limits, and a drawer that tells what the next call with a key gets. Everything that it shows comes from the
// functions of its Source, which it samples every two seconds. A Page is safe for concurrent use.
package dashboard

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash/maphash"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/edge/door"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// Source provides what a Page shows. Its functions are safe for concurrent use; Persistence, Remote,
// Replication and EnvoyLimits may be nil.
type Source struct {
	ask.Source // without LastSeen and OneDatabase, which the page sets

	Version string
	Sample  func() history.Sample
	Facts   func() Facts
	Refused func() []Refusal // most called first
	// Overrides returns some of a limit's overrides, by commands and by the file.
	Overrides func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override)
	// Spent returns what was spent under a limit by day, or under all if it is empty; nil for nothing.
	Spent       func(limit string) store.Spends
	Doors       map[string]*door.Stats // by name
	Persistence func() store.Durability
	Remote      func() store.Health
	Replication func() replicas.Status    // nil for a store on other machines
	EnvoyLimits func() envoyconfig.Status // nil without a door for Envoy

	Actions *actions.Handler // nil for a page that changes nothing

	Runbook string // HTML, at /runbook; empty for none

	Latency func() histogram.Durations                           // latency of calls since the start
	Top     func(ranking topkeys.Ranking, n int) []topkeys.Entry // hottest first
}

// Page handles / and /live.json, from which the page's script updates it.
type Page struct {
	source  Source
	boot    string // identifies this Page
	seed    maphash.Seed
	history history.History
	traces  history.Traces
	policy  string // Content-Security-Policy

	english, chinese *words.Texts
	compressors      sync.Pool // of *gzip.Writer

	mu     sync.Mutex // rank 15: guards sampled
	latest sampled
}

// sampled is the page's part of the newest sample, fetched once for all browsers.
type sampled struct {
	added      int // points since the start
	points     []history.Point
	last       *history.Sample
	hot        []hotKey
	limits     []limitRow
	minutes    []history.Minute
	bounded    *history.Sample // of which the use of resources is shown
	lastError  observe.LastError
	erredNs    int64            // time of lastError; 0 for never
	replicated *replicas.Status // nil for a server without replication
	renewed    renewal
}

// renewal says which of the large parts a sample renewed. While the page is watched they take turns, which
// bounds the size of an update.
type renewal uint8

const (
	renewedAll    renewal = iota
	renewedLimits         // and the use of resources, but not the hot keys, if there are limits
	renewedMinutes
	renewedStates // the last error and replication
	renewals
)

// New returns the live page of a server.
func New(s Source) *Page {
	return &Page{
		source:  s,
		boot:    rand.Text()[:8],
		seed:    maphash.MakeSeed(),
		english: words.English(), chinese: words.Chinese(),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; script-src '" + digest(script()) +
			"'; style-src '" + digest(style()) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

// digest returns the hash by which a Content-Security-Policy allows inline text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Run takes samples until ctx is done.
func (p *Page) Run(ctx context.Context) {
	ticker := time.NewTicker(history.Interval)
	defer ticker.Stop()
	p.sample()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.sample()
		}
	}
}

func (p *Page) sample() {
	if p.history.Add(p.source.Now(), p.source.Sample(), p.source.Latency()) {
		p.record()
	}
}

// record adds a point to the traces.
func (p *Page) record() {
	p.traces.Record(p.source.Top(topkeys.Requested, history.TracedTop), p.source.Top(topkeys.Limited, history.TracedTop), p.source.Limits())
}

const topKeyCount = 10

// watched is the number of samples after the last shown one for which the page counts as watched: a browser
// that asks every two seconds and waits for the answers misses some.
const watched = 5

// newest returns the newest sample.
func (p *Page) newest() sampled {
	points, last, added := p.history.Points()
	p.mu.Lock()
	defer p.mu.Unlock()
	before := &p.latest
	if added > 0 && before.added == added {
		return *before
	}
	now := *before
	now.added, now.points, now.last, now.renewed = added, points, last, renewedAll
	if before.added > 0 && added-before.added <= watched {
		now.renewed = before.renewed%(renewals-1) + 1
	}
	renews := func(r renewal) bool { return now.renewed == renewedAll || now.renewed == r }
	if renews(renewedLimits) {
		now.limits, now.bounded = p.limitRows(), last
	}
	if now.renewed != renewedLimits || len(now.limits) == 0 {
		now.hot = hotKeys(p.source.Top(topkeys.Requested, topkeys.Counters), p.source.Top(topkeys.Limited, topkeys.Counters))
	}
	if renews(renewedMinutes) {
		now.minutes = history.Minutes(points)
	}
	if renews(renewedStates) {
		now.lastError, now.erredNs = p.history.LastError()
		now.replicated = p.replicationStatus()
	}
	p.latest = now
	return now
}

// ServeHTTP answers GET and HEAD.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would have forms send Origin: null
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close") // a poll every few seconds must not hold a connection in between
	serve, contentType, policy := p.servePage, "text/html; charset=utf-8", p.policy
	switch {
	case r.URL.Path == "/live.json":
		serve, contentType, policy = p.serveUpdate, "application/json", "default-src 'none'"
	case r.URL.Path == "/runbook" && p.source.Runbook != "":
		serve = p.serveRunbook
	}
	h.Set("Content-Security-Policy", policy)
	if len(r.URL.RawQuery) > maxQueryBytes {
		http.Error(w, "the address is too long", http.StatusRequestURITooLong)
		return
	}
	body, err := serve(p.view(r), r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentType)
	p.write(w, r, body)
}

// view is the page for one request.
type view struct {
	page        *Page
	t           *words.Texts
	query       url.Values
	remote      *store.Health       // nil with a store in memory
	durable     *store.Durability   // nil without a disk
	replication *replicas.Status    // nil for a server without
	envoy       *envoyconfig.Status // nil without a door for it
	faults      []fault             // the most urgent first
	asker       *ask.Source
	asked       ask.Question
	acting      actions.State
	sampled
}

func (p *Page) view(r *http.Request) *view {
	query := readQuery(r.URL.Query())
	v := &view{page: p, t: p.textsFor(query.Get("lang"), r.Header.Get("Accept-Language")), query: query, sampled: p.newest()}
	v.remote, v.durable, v.replication = reading(p.source.Remote), reading(p.source.Persistence), p.replicationStatus()
	v.envoy = reading(p.source.EnvoyLimits)
	v.faults = v.findFaults()
	asker := p.source.Source
	asker.LastSeen, asker.OneDatabase = v.lastSeen, v.remote != nil
	v.asker = &asker
	v.asked = v.asker.Ask(v.t, v.query)
	v.acting = p.acting(r)
	return v
}

// reading returns what a function of the Source tells, or nil without one.
func reading[T any](f func() T) *T {
	if f == nil {
		return nil
	}
	st := f()
	return &st
}

// lastSeen returns the terms of a key's last counted call, if it is one of the hottest.
func (v *view) lastSeen(key store.Key) limiter.Terms {
	for i := range v.hot {
		if k := &v.hot[i]; k.DB == key.DB && !k.Cut && k.Name == string(key.Name) {
			return k.Terms
		}
	}
	return limiter.Terms{}
}

// now returns the newest point, or nil if there is none.
func (v *view) now() *history.Point {
	if len(v.points) == 0 {
		return nil
	}
	return &v.points[len(v.points)-1]
}

// weightOf returns the largest weight, from 0 to 1, that an Accept header gives to name or to a subtag of it,
// as zh-CN is of zh.
func weightOf(accept, name string) (most float64) {
	for one := range strings.SplitSeq(accept, ",") {
		given, parameter, weighted := strings.Cut(one, ";")
		given, _, _ = strings.Cut(strings.TrimSpace(given), "-")
		if !strings.EqualFold(given, name) {
			continue
		}
		weight := 1.0
		if weighted {
			text, _ := strings.CutPrefix(strings.ReplaceAll(parameter, " ", ""), "q=")
			weight, _ = strconv.ParseFloat(text, 64) // 0 for an invalid number
		}
		if weight <= 1 {
			most = max(most, weight)
		}
	}
	return most
}

// textsFor returns the texts in the language of the query or, without one, of the browser.
func (p *Page) textsFor(requested, acceptLanguage string) *words.Texts {
	prefersChinese := weightOf(acceptLanguage, "zh") > weightOf(acceptLanguage, "en")
	if requested == "zh" || requested != "en" && prefersChinese {
		return p.chinese
	}
	return p.english
}

// fromElsewhere reports whether another site or another port of this one asks.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// write sends a response, compressed if the browser accepts that. Responses to requests from other sites stay
// uncompressed: the page mixes secrets with input that another site can choose, and the compressed size would
// leak.
func (p *Page) write(w http.ResponseWriter, r *http.Request, body []byte) {
	h := w.Header() // no Vary, as nothing is stored
	if fromElsewhere(r) || weightOf(r.Header.Get("Accept-Encoding"), "gzip") == 0 {
		_, _ = w.Write(body)
		return
	}
	h.Set("Content-Encoding", "gzip")
	to, ok := p.compressors.Get().(*gzip.Writer) // about a megabyte each
	if ok {
		to.Reset(w)
	} else {
		to, _ = gzip.NewWriterLevel(w, gzip.BestCompression) // the level is valid
	}
	_, _ = to.Write(body)
	_ = to.Close()
	to.Reset(nil)
	p.compressors.Put(to)
}
