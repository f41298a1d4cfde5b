// Package dashboard serves the live page: figures and charts of the last 15 minutes, hot keys, named limits,
// and a drawer that tells what the next call with a key gets. It keeps a history of one sample every two
// seconds; everything it shows comes from the functions of its Source. A Page is safe for concurrent use.
package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash/maphash"
	"net/http"
	"net/url"
	"sync"
	"time"

	"cellserver/internal/base/zones"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/edge/door"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
	"cellserver/internal/store"
	"cellserver/internal/store/replicas"
)

// Source provides what a Page shows. Its functions are safe for concurrent use; State, Calendars, Limits,
// Refused, Persistence, Remote, Replication and Facts may be nil.
type Source struct {
	Version string
	Now     func() int64 // Unix nanoseconds
	Sample  func() Sample
	Facts   func() Facts
	// State returns a key's state without changing it.
	State     func(nowNs int64, key store.Key) (s limiter.State, ok bool, err error)
	Calendars *calendar.Set // of quotas

	Reading     funnel.Reading
	Databases   int
	MaxKeyBytes int

	Refused func() []Refusal           // most called first
	Limits  func() []*namedlimit.Limit // by name
	// Overrides returns some of a limit's overrides, by commands and by the file.
	Overrides   func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override)
	Doors       map[string]*door.Stats // by name
	Persistence func() store.Durability
	Remote      func() store.Health
	Replication func() replicas.Status // nil for a store on other machines

	Actions *actions.Handler // nil for a page that changes nothing

	Runbook string // HTML, at /runbook; empty for none

	Latency func() histogram.Durations                           // latency of calls since the start
	Top     func(ranking topkeys.Ranking, n int) []topkeys.Entry // hottest first
}

// Sample is the server's state at one time. Counters count since the start; a maximum of 0 is none.
type Sample struct {
	Allowed, Limited            uint64 // the sums of Outcomes
	Outcomes                    [limiter.Kinds]store.Outcomes
	Connections, MaxConnections int
	Keys                        int
	MemoryBytes, MaxMemoryBytes uint64
	TableBytes, MaxTableBytes   uint64
	ClientBytes, MaxClientBytes uint64
	Evicted, Refused            uint64 // limiters
	Values                      store.ValueStats
	Errors                      uint64 // replies
	OwnErrors                   uint64 // of these, with codes of the server's own but NOSCRIPT
	LastError                   observe.LastError
	ConnectionsRefused          uint64
	NewKeysRefused              uint64 // by --max-new-keys-per-second
	ScriptsEnded                uint64 // at a limit
	LogLinesLost                uint64
	Panics                      uint64 // that ended a connection
	WrongPasswords              uint64
	FilesRefused                bool // the last file of limits, or of rules for Envoy
	HandoversTimedOut           uint64
	ChangesRefused              uint64 // times that it began, for lack of replicas
	StoreRequests               uint64 // to the store on other machines
	ByPolicy, Prefiltered       uint64 // requests decided without the store on other machines
	RoundTripNs                 int64  // of the slowest store server
	WrittenBytes                uint64 // to the disk
	SyncNs                      int64  // duration of the last sync
}

// Page handles / and /live.json, from which the page's script updates it.
type Page struct {
	source  Source
	boot    string // identifies this Page
	seed    maphash.Seed
	history history
	traces  traces
	policy  string // Content-Security-Policy

	compressors sync.Pool // of *gzip.Writer

	mu     sync.Mutex // rank 15: guards sampled
	latest sampled
}

// sampled is the page's part of the newest sample, fetched once for all browsers.
type sampled struct {
	added      int // points since the start
	points     []point
	last       Sample
	hot        []hotKey
	limits     []limitRow
	minutes    []minute
	bounded    Sample // of which the use of resources is shown
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
	if s.Calendars == nil {
		s.Calendars = calendar.NewSet(&calendar.Wall{}, zones.Load)
	}
	return &Page{
		source: s,
		boot:   rand.Text()[:8],
		seed:   maphash.MakeSeed(),
		traces: traces{keys: map[traceKey]*trace{}, limits: map[string]*limitTrace{}},
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
	ticker := time.NewTicker(sampleInterval)
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
	if p.history.add(p.source.Now(), p.source.Sample(), p.source.Latency()); p.history.added%traceEvery == 0 {
		p.record()
	}
}

const topKeyCount = 10

// watched is the number of samples after the last shown one for which the page counts as watched: a browser
// that asks every two seconds and waits for the answers misses some.
const watched = 5

// newest returns the newest sample.
func (p *Page) newest() sampled {
	points, last, added := p.history.points()
	p.mu.Lock()
	defer p.mu.Unlock()
	before := &p.latest
	if added > 0 && before.added == added {
		return *before
	}
	now := sampled{
		added: added, points: points, last: last,
		limits: before.limits, minutes: before.minutes, bounded: before.bounded, lastError: before.lastError, erredNs: before.erredNs,
		replicated: before.replicated, hot: before.hot,
	}
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
		now.minutes = minutes(points)
	}
	if renews(renewedStates) {
		now.lastError, now.erredNs = p.history.lastError()
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
	page   *Page
	t      *words.Texts
	query  url.Values
	remote *store.Health // nil with a store in memory
	// replication is nil for a server without.
	replication *replicas.Status
	faults      []fault // the most urgent first
	asker       *ask.Source
	asked       ask.Question
	acting      actions.State
	sampled
}

func (p *Page) view(r *http.Request) *view {
	query := readQuery(r.URL.Query())
	v := &view{page: p, t: textsFor(query.Get("lang"), r.Header.Get("Accept-Language")), query: query, sampled: p.newest()}
	if p.source.Remote != nil {
		st := p.source.Remote()
		v.remote = &st
	}
	v.replication = p.replicationStatus()
	v.faults = v.findFaults()
	v.asker = v.newAsker()
	v.asked = v.asker.Ask(v.t, v.query)
	v.acting = p.acting(r)
	return v
}

func (v *view) newAsker() *ask.Source {
	s := &v.page.source
	return &ask.Source{
		Now: s.Now, State: s.State, Limits: s.Limits, Calendars: s.Calendars, LastSeen: v.lastSeen,
		Reading: s.Reading, Databases: s.Databases, MaxKeyBytes: s.MaxKeyBytes, Remote: s.Remote != nil,
	}
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
func (v *view) now() *point {
	if len(v.points) == 0 {
		return nil
	}
	return &v.points[len(v.points)-1]
}
