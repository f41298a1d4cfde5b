// Package dashboard serves the live page: charts of the server's last 15 minutes, its hot keys, and a form that inspects
// one key. It keeps the history itself, one sample every two seconds; everything it shows comes from the functions of its
// Source. A Page is safe for concurrent use.
package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash/maphash"
	"net/http"
	"sync"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/decide/histogram"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Source is what a Page needs of the server. Its functions are safe for concurrent use.
type Source struct {
	Version string
	Now     func() int64 // Unix nanoseconds
	Sample  func() Sample
	Facts   func() Facts
	// Look looks at a key by a rule. It changes nothing.
	Look func(nowNs int64, key store.Key, rule *limiter.Rule) (decide.Probe, error)

	Reading     funnel.Reading
	Databases   int
	MaxKeyBytes int

	// Limits are the named limits by name; nil for none.
	Limits func() []*namedlimit.Limit

	// Persistence is what is kept on a disk; nil if nothing is.
	Persistence func() store.Durability

	// Remote is how the store on other machines is; nil for one in memory.
	Remote func() store.Health

	Latency func() histogram.Snapshot                            // of calls since the start
	Top     func(ranking topkeys.Ranking, n int) []topkeys.Entry // hottest first
}

// Sample is the server's state at one time. What is counted is counted since its start; a maximum of 0 is none.
type Sample struct {
	Allowed, Limited            uint64 // the sums of Outcomes
	Outcomes                    [limiter.Kinds]store.Outcomes
	Connections, MaxConnections int
	Keys                        int
	MemoryBytes, MaxMemoryBytes uint64
	TableBytes, MaxTableBytes   uint64
	ClientBytes, MaxClientBytes uint64
	Evicted, Refused            uint64 // keys that had no room
	Errors                      uint64 // replies
	LastError                   observe.LastError
	ConnectionsRefused          uint64
	NewKeysRefused              uint64 // by --max-new-keys-per-second
	ScriptsEnded                uint64 // at a limit
	LogLinesLost                uint64
	ByPolicy, Prefiltered       uint64 // requests that were not sent to the store on other machines, by why
	RoundTripNs                 int64  // to the slowest of its servers
	WrittenBytes                uint64 // to the disk
	SyncNs                      int64  // what the last sync took
}

// Page is the HTTP handler of / and of /live.json, by which the page's script keeps it up to date.
type Page struct {
	source  Source
	boot    string // tells this Page from others
	seed    maphash.Seed
	history history
	policy  string // Content-Security-Policy

	compressors sync.Pool // of *gzip.Writer

	mu     sync.Mutex // guards sampled
	latest sampled
}

// sampled is what the page shows of the newest sample. It is fetched once, however many browsers ask.
type sampled struct {
	added              int // points since the start
	points             []point
	last               Sample
	requested, limited []topkeys.Entry
	limits             []limitRow
	minutes            []minute
	lastError          observe.LastError
	erredNs            int64 // when that was; 0 for never
	renewed            table
}

// table is a part of the page that is renewed in its turn with others of its size.
type table uint8

const (
	allTables table = iota // as nobody watched
	limitsTable
	minutesTable
	lastErrorTable
	tables
)

// New returns the live page of a server.
func New(s Source) *Page {
	return &Page{
		source: s,
		boot:   rand.Text()[:8],
		seed:   maphash.MakeSeed(),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; script-src '" + digest(script()) +
			"'; style-src '" + digest(styleCSS) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

// digest returns the hash by which a Content-Security-Policy allows an inline script or style.
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
	p.history.add(p.source.Now(), p.source.Sample(), p.source.Latency())
}

const topKeyCount = 10

// watched is how many samples after the last one that was shown somebody still watches the page: a browser that asks every
// two seconds, and waits for the answers, misses some.
const watched = 5

// newest returns the newest sample. Tables that nobody watches by the second are renewed in turn, so that an update of a page
// that is watched does not have them all.
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
		limits: before.limits, minutes: before.minutes, lastError: before.lastError, erredNs: before.erredNs,
		requested: p.source.Top(topkeys.Requested, topKeyCount), limited: p.source.Top(topkeys.Limited, topKeyCount),
	}
	if isWatched := before.added > 0 && added-before.added <= watched; isWatched {
		now.renewed = before.renewed%(tables-1) + 1
	}
	renews := func(t table) bool { return now.renewed == allTables || now.renewed == t }
	if renews(limitsTable) {
		now.limits = p.limitRows()
	}
	if renews(minutesTable) {
		now.minutes = minutes(points)
	}
	if renews(lastErrorTable) {
		now.lastError, now.erredNs = p.history.lastError()
	}
	p.latest = now
	return now
}

// ServeHTTP answers GET and HEAD.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close") // an open page polls every few seconds, and must not hold a connection in between
	serve, contentType, policy := p.servePage, "text/html; charset=utf-8", p.policy
	if r.URL.Path == "/live.json" {
		serve, contentType, policy = p.serveUpdate, "application/json", "default-src 'none'"
	}
	h.Set("Content-Security-Policy", policy)
	body, err := serve(p.view(r), r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentType)
	p.write(w, r, body)
}
