package rls

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
)

// DebugConfig configures NewDebug.
type DebugConfig struct {
	// Dump writes the configuration.
	Dump func(io.Writer, *envoyconfig.Rules) error
	// Profiles serves profiles, to users who may do everything.
	Profiles bool
}

// endpoint is a path of the debug port.
type endpoint struct {
	path, help string
	serve      http.HandlerFunc
	operators  bool // alone may ask
}

// debugPort serves the paths of envoyproxy/ratelimit's debug port, and lists them under all others, as there.
type debugPort struct {
	service   *Service
	endpoints []endpoint // by path

	mu    sync.Mutex // rank 85: guards all below, and has texts computed one at a time
	rules *envoyconfig.Rules
	text  []byte // of rules
}

// dump returns the text of the rules in use, which is computed once: anybody may ask for it again and again.
func (p *debugPort) dump(of func(io.Writer, *envoyconfig.Rules) error) []byte {
	rules := p.service.config.Rules()
	p.mu.Lock()
	defer p.mu.Unlock()
	if rules != p.rules {
		var b bytes.Buffer
		_ = of(&b, rules) // a buffer takes all
		p.rules, p.text = rules, b.Bytes()
	}
	return p.text
}

func (p *debugPort) stats() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.service.Metrics.text()
}

// NewDebug returns what a door of HTTP serves in place of envoyproxy/ratelimit's debug port: /rlconfig and
// /stats, to whom calls are open.
func NewDebug(s *Service, c DebugConfig) http.Handler {
	p := &debugPort{service: s}
	if c.Profiles {
		p.endpoints = []endpoint{
			{"/debug/pprof/", "root of various pprof endpoints. hit for help.", pprof.Index, true},
			{"/debug/pprof/profile", "CPU profiling endpoint", pprof.Profile, true},
			{"/debug/pprof/trace", "trace endpoint", pprof.Trace, true},
		}
	}
	p.endpoints = append(p.endpoints,
		endpoint{"/rlconfig", "print out the currently loaded configuration for debugging", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(p.dump(c.Dump)) // a failure ends the connection
		}, false},
		endpoint{"/stats", "print out stats", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, p.stats())
		}, false},
	)
	return p
}

func (p *debugPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := door.ConnOf(r)
	user, err := p.service.admitHTTP(c, r)
	e := p.find(r.URL.Path)
	if err == nil && e != nil && e.operators && !c.IsOperator(user) {
		err = errNoOperator
	}
	end(w, r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case err != nil:
		c.Count(door.OutcomeOf(codeOf(err)), c.Now())
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	case e != nil:
		e.serve(w, r)
	default:
		for _, e := range p.endpoints {
			_, _ = fmt.Fprintf(w, "%s: %s\n", e.path, e.help)
		}
	}
	c.Count(door.Allowed, c.Now())
}

var errNoOperator = &door.RefusedError{Reason: "profiles are for users who may do everything"}

// find returns what serves a path, or nil. A path with a slash at its end has all below it, too.
func (p *debugPort) find(path string) (found *endpoint) {
	for i := range p.endpoints {
		e := &p.endpoints[i]
		if e.path == path || found == nil && strings.HasSuffix(e.path, "/") && strings.HasPrefix(path, e.path) {
			found = e
		}
	}
	if path == "/debug/pprof/cmdline" { // may have a password
		return nil
	}
	return found
}

// text has the counters under envoyproxy/ratelimit's own names, a line each.
func (m *Metrics) text() string {
	var lines []string
	add := func(name string, n uint64) { lines = append(lines, fmt.Sprintf("ratelimit.service.%s: %d\n", name, n)) }
	clean := statNames()
	m.Each(func(domain, descriptor string, c *Counts) {
		rule := "rate_limit.others"
		if domain != "" {
			rule = "rate_limit." + clean(domain+"."+descriptor)
		}
		add(rule+".total_hits", c.TotalHits.Load())
		add(rule+".within_limit", c.WithinLimit.Load())
		add(rule+".near_limit", c.NearLimit.Load())
		add(rule+".over_limit", c.OverLimit.Load())
		add(rule+".shadow_mode", c.ShadowMode.Load())
	})
	add("global_shadow_mode", m.GlobalShadow())
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// statNames replaces what separates the parts of a name of statsd, as there, and lines.
func statNames() func(string) string {
	special, ipv4 := strings.NewReplacer(":", "_", "|", "_", "\n", "_"), regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)
	return func(name string) string {
		return ipv4.ReplaceAllStringFunc(special.Replace(name), func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
	}
}
