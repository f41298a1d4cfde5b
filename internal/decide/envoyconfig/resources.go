package envoyconfig

import (
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/decide/namedlimit"
)

// OfResources returns the rules of resources, as they come over xDS: what files say, but for fields of files
// alone. The error has one line and names all mistakes.
func OfResources(all []*configpb.RateLimitConfig, o Options) (*Rules, error) {
	p := newParser(o)
	p.merge = "merge the resources in the xDS server, or start as ratelimit with MERGE_DOMAIN_CONFIG=true"
	for at, of := range all {
		p.readResource(of, at)
	}
	rules, err := p.done()
	if err == nil {
		rules.noteReplaces() // descriptors that limit nothing are common in what programs write
	}
	return rules, err
}

// maxProblems bounds what is collected: an entry of replaces has few bytes. An error tells a part of these.
const maxProblems = 1000

// resource is one that is read.
type resource struct {
	*parser
	at   int
	name string
}

func (p *parser) readResource(c *configpb.RateLimitConfig, at int) {
	r := &resource{p, at, "resource " + yamlfile.Quote(c.Name)}
	p.fail = func(at Line, text string) {
		if len(p.problems) < maxProblems {
			p.problems = append(p.problems, at.Path+": "+text)
		}
	}
	top := Line{File: at, Path: r.name}
	if c.Domain == "" {
		p.fail(top, "domain is missing")
		return
	}
	if d := p.domain(c.Domain, top); d != nil {
		r.readLevel(c.Descriptors, &d.Top, "", 1)
	}
}

func (r *resource) readLevel(all []*configpb.RateLimitDescriptor, l *Level, path string, depth int) {
	above := r.lineOf(path)
	if len(all) > 0 && !r.mayNest(above, depth) {
		return
	}
	for _, of := range all {
		if !r.mayAdd(above) {
			return
		}
		d := &Descriptor{
			Key: of.Key, Value: of.Value, Shadow: of.ShadowMode, Detailed: of.DetailedMetric, Quota: of.QuotaMode, Metadata: of.Metadata,
		}
		if len(of.Metadata.GetFields()) == 0 {
			d.Metadata = nil
		}
		d.Path = path + d.Composite()
		d.At = r.lineOf(d.Path)
		if of.RateLimit != nil {
			d.Rate = r.rateOf(of.RateLimit, d.At)
		}
		r.check(d)
		r.add(l, d)
		r.readLevel(of.Descriptors, &d.Below, d.Path+".", depth+1)
	}
}

// lineOf says where a descriptor is.
func (r *resource) lineOf(path string) Line {
	return Line{File: r.at, Path: r.name + ", descriptor " + yamlfile.QuoteWord(strings.TrimSuffix(path, "."))}
}

func (r *resource) rateOf(of *configpb.RateLimitPolicy, at Line) *Rate {
	l := &Rate{
		Unlimited: of.Unlimited, Count: of.RequestsPerUnit, Unit: strings.ToLower(of.Unit.String()), Algorithm: namedlimit.Quota, Name: of.Name, NameAt: at,
	}
	if of.Unit == configpb.RateLimitUnit_UNKNOWN {
		l.Unit = ""
	}
	r.checkUnit(at, l)
	for _, entry := range of.Replaces {
		r.addReplaced(l, at, entry.GetName())
	}
	return l
}
