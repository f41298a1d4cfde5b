// Package dashboard serves the live page: charts of the server's last 15 minutes, its hot keys, and a form that inspects
// one key. It keeps the history itself, one sample every two seconds; everything it shows comes from the functions of its
// Source. A Page is safe for concurrent use.
package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"sync"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/funnel"
	"cellserver/internal/histogram"
	"cellserver/internal/limits"
	"cellserver/internal/persist"
	"cellserver/internal/remote/watch"
	"cellserver/internal/store"
	"cellserver/internal/topkeys"
)

// Source is what a Page needs of the server. Its functions are safe for concurrent use.
type Source struct {
	Version string
	Now     func() int64 // Unix nanoseconds
	Sample  func() Sample
	// Look looks at the funnel that a key has by a limit. It changes nothing.
	Look func(nowNs int64, key store.Key, limit funnel.Limit) (decide.Probe, error)

	Reading     funnel.Reading
	Databases   int
	MaxKeyBytes int

	// Limits are the named limits by name; nil for none.
	Limits func() []*limits.Limit

	// Persistence is what is kept on a disk; nil if nothing is.
	Persistence func() persist.Status

	// Remote is how the store on other machines is; nil for one in memory.
	Remote func() watch.Status

	Latency func() histogram.Snapshot                            // of calls since the start
	Top     func(ranking topkeys.Ranking, n int) []topkeys.Entry // hottest first
}

// Sample is the server's state at one time. Allowed and Limited count since its start.
type Sample struct {
	Allowed, Limited  uint64
	Connections, Keys int
	MemoryBytes       uint64
	MaxMemoryBytes    uint64 // 0 for no maximum
	Evicted, Refused  uint64 // keys that had no room, since the start
	ByPolicy          uint64 // requests that the store on other machines did not decide, since the start
}

// Page is the HTTP handler of /.
type Page struct {
	source   Source
	history  history
	template *template.Template
	policy   string // Content-Security-Policy

	mu       sync.Mutex     // guards rendered
	rendered renderedSample // of the newest sample
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed style.css
	styleCSS string
	//go:embed live.js
	liveJS string
)

// New returns the live page of a server.
func New(s Source) *Page {
	return &Page{
		source:   s,
		template: template.Must(template.New("page").Parse(pageHTML)),
		policy: "default-src 'none'; connect-src 'self'; img-src data:; script-src '" + digest(liveJS) +
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

// ServeHTTP answers GET and HEAD.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close") // an open page polls every few seconds, and must not hold a connection in between
	v, err := p.view(r)
	var body bytes.Buffer
	if err == nil {
		err = p.template.Execute(&body, v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", "Accept-Language")
	_, _ = body.WriteTo(w)
}
