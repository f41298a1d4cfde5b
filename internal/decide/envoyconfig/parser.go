package envoyconfig

import (
	"strconv"
	"strings"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/wire/glob"
)

// Bounds, which aliases in a file may exceed with few bytes:
const (
	MaxDescriptors = 100_000 // of all files

	maxDepth     = 32
	maxPathBytes = 64 << 20 // of all descriptors: each has the domain, and the keys and values of those above it
)

// parser makes rules of what readers of files and of resources find.
type parser struct {
	options  Options
	rules    *Rules
	problems yamlfile.Problems
	fail     func(at Line, text string) // of the reader
	merge    string                     // what to do about a domain that is there twice

	domainBytes            int // of the name of the present domain
	descriptors, pathBytes int // so far
}

func newParser(o Options) *parser {
	return &parser{options: o, rules: &Rules{byName: map[string]*Domain{}}}
}

func (p *parser) done() (*Rules, error) {
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	p.rules.list()
	return p.rules, nil
}

func (p *parser) note(at Line, text string) { p.rules.Notes = append(p.rules.Notes, Note{at, text}) }

// domain returns the domain to add to, or nil after an error.
func (p *parser) domain(name string, at Line) *Domain {
	p.domainBytes = len(name)
	switch d := p.rules.Domain(name); {
	case d == nil:
		d = &Domain{Name: name, At: at}
		p.rules.Domains, p.rules.byName[name] = append(p.rules.Domains, d), d
		return d
	case p.options.MergeDomains:
		return d
	default:
		p.fail(at, "domain "+yamlfile.QuoteWord(name)+" is in "+d.At.String()+" already; "+p.merge)
		return nil
	}
}

// mayNest reports whether there may be descriptors of a depth.
func (p *parser) mayNest(at Line, depth int) bool {
	if depth > maxDepth {
		p.fail(at, "descriptors nest deeper than "+strconv.Itoa(maxDepth)+" levels")
		return false
	}
	return true
}

// mayAdd counts a descriptor, and reports whether there may be another.
func (p *parser) mayAdd(at Line) bool {
	if p.descriptors++; p.descriptors > MaxDescriptors {
		if p.descriptors == MaxDescriptors+1 {
			p.fail(at, "more than "+strconv.Itoa(MaxDescriptors)+" descriptors; split the configuration")
		}
		return false
	}
	return p.pathBytes <= maxPathBytes // else each further path would be long, too
}

func (p *parser) check(d *Descriptor) {
	if d.Key == "" {
		p.fail(d.At, "a descriptor must have a key")
	}
	if d.Shadow && (d.Rate == nil || d.Rate.Unlimited) {
		p.note(d.FieldAt("shadow_mode"), "shadow_mode has no effect without a limit; remove it")
	}
	if d.Shared && !d.isWild() {
		p.fail(d.FieldAt("share_threshold"), "share_threshold needs a value with *, got "+yamlfile.QuoteWord(d.Value))
	}
}

func (d *Descriptor) isWild() bool { return strings.Contains(d.Composite(), "*") }

// add adds a descriptor, or reports one of the same key and value.
func (p *parser) add(l *Level, d *Descriptor) {
	n := p.domainBytes + len(d.Path)
	if p.pathBytes += n; p.pathBytes > maxPathBytes {
		if p.pathBytes-n <= maxPathBytes {
			p.fail(d.At, "the domains, keys and values of all descriptors, each with those above it, have more than 64 MiB; shorten them")
		}
		return
	}
	if l.byComposite == nil {
		l.byComposite = map[string]*Descriptor{}
	}
	composite := d.Composite()
	if first, found := l.byComposite[composite]; found {
		p.fail(d.At, "descriptor "+yamlfile.QuoteWord(composite)+" is in "+first.At.String()+" already; remove one")
		return
	}
	l.byComposite[composite] = d
	l.All = append(l.All, d)
	if d.isWild() {
		d.pattern = glob.Compile([]byte(Glob(composite)))
		l.wild = append(l.wild, d)
	}
}

// checkUnit checks the unit of a rate, and has it in lower case.
func (p *parser) checkUnit(at Line, l *Rate) {
	known := knownUnit(l.Unit)
	switch {
	case l.Unlimited && known != "":
		p.fail(at, "unlimited has no unit; remove one of them")
	case l.Unlimited && l.Unit != "":
		p.note(at, "unit has no effect beside unlimited; remove it")
	case !l.Unlimited && known == "":
		p.fail(at, "unit must be second, minute, hour, day, week, month or year, got "+yamlfile.QuoteWord(l.Unit))
	}
	l.Unit = known
}

// addReplaced adds an entry of replaces.
func (p *parser) addReplaced(l *Rate, at Line, name string) {
	switch name {
	case "":
		p.fail(at, "an entry of replaces must have a name")
	case l.Name:
		p.fail(at, "replaces names its own rate limit, "+yamlfile.QuoteWord(name)+"; remove it")
	default:
		l.Replaces = append(l.Replaces, Replaced{at, name})
	}
}
