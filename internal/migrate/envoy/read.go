package envoy

import (
	"errors"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
)

// reader reads one file.
type reader struct {
	*translator
	yamlfile.File
	file int
}

// read reads a file and adds its domain.
func (t *translator) read(f *File, file int) {
	r := reader{t, yamlfile.File{Path: f.Path}, file}
	if root := r.Root(f.Text); root != nil {
		r.readRoot(root)
	} else if r.Count() == 0 {
		r.FailAt(1, "the file is empty; domain is missing")
	}
	if problems := (yamlfile.Problems)(nil); errors.As(r.Err(), &problems) {
		t.problems = append(t.problems, problems...)
	}
}

func (r *reader) of(n *yaml.Node) at { return at{r.file, r.Path, n.Line} }

func (r *reader) readRoot(n *yaml.Node) {
	name := ""
	var list *yaml.Node
	r.fields(n, "the file", func(key, value *yaml.Node) {
		switch key.Value {
		case "domain":
			name = r.text(value, "domain")
		case "descriptors":
			list = value
		default:
			r.misplaced(key, "the file")
		}
	})
	if r.Count() > 0 {
		return
	}
	if name == "" {
		r.Fail(n, "domain is missing")
		return
	}
	if d := r.domain(name, r.of(n)); d != nil && list != nil {
		r.readLevel(list, d, &d.top, 1)
	}
}

// domain returns the domain to add to, or nil after an error.
func (r *reader) domain(name string, a at) *domain {
	for _, d := range r.domains {
		if d.name != name {
			continue
		}
		if !r.options.MergeDomains {
			r.FailAt(a.line, "domain "+yamlfile.Quote(name)+" is in "+d.at.String()+
				" already; merge the files, or allow it as MERGE_DOMAIN_CONFIG does there")
			return nil
		}
		return d
	}
	d := &domain{name: name, at: a, named: map[string][]*descriptor{}}
	r.domains = append(r.domains, d)
	return d
}

func (r *reader) readLevel(n *yaml.Node, of *domain, l *level, depth int) {
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, "descriptors must be a list")
		return
	}
	if depth > maxDepth {
		r.Fail(n, "descriptors nest deeper than "+strconv.Itoa(maxDepth)+" levels")
		return
	}
	for _, item := range n.Content {
		if r.descriptors++; r.descriptors > maxDescriptors {
			if r.descriptors == maxDescriptors+1 {
				r.Fail(item, "more than "+strconv.Itoa(maxDescriptors)+" descriptors; split the configuration")
			}
			return
		}
		r.readDescriptor(item, of, l, depth)
	}
}

func (r *reader) readDescriptor(item *yaml.Node, of *domain, l *level, depth int) {
	n := yamlfile.Resolve(item)
	d := &descriptor{at: r.of(n)}
	var list, shares *yaml.Node
	before := r.Count()
	r.fields(n, "a descriptor", func(key, value *yaml.Node) {
		switch key.Value {
		case "key":
			d.key = r.text(value, "key")
		case "value":
			d.value = r.text(value, "value")
		case "rate_limit":
			d.rate = r.readRate(value)
		case "descriptors":
			list = value
		case "shadow_mode":
			d.shadow, d.shadowAt = r.yes(value, "shadow_mode"), r.of(key)
		case "share_threshold":
			if r.yes(value, "share_threshold") {
				shares = key
			}
		default:
			r.readRest(key, value)
		}
	})
	if r.Count() > before {
		return
	}
	r.check(d, shares)
	r.add(l, d)
	if d.rate != nil && d.rate.name != "" {
		of.named[d.rate.name] = append(of.named[d.rate.name], d)
	}
	if list != nil {
		r.readLevel(list, of, &d.below, depth+1)
	}
}

// readRest reads what decides about no single request.
func (r *reader) readRest(key, value *yaml.Node) {
	text := ""
	switch key.Value {
	case "detailed_metric", "value_to_metric":
		if r.yes(value, key.Value) {
			text = "metrics here count per limit, not per value; remove it, or count values where they are sent"
		}
	case "quota_mode":
		if r.yes(value, key.Value) {
			text = "there a request passes while one of its quota_mode descriptors does; " +
				"let the caller deny only if all of these checks do"
		}
	case "metadata":
		if value.Kind != yaml.MappingNode {
			r.Fail(value, "metadata must be a mapping")
		} else if len(value.Content) > 0 {
			text = "replies here carry none; keep it where the reply is read"
		}
	default:
		r.misplaced(key, "a descriptor")
	}
	if text != "" {
		r.note(r.of(key), key.Value+" is not translated: "+text)
	}
}

// check checks a descriptor by itself.
func (r *reader) check(d *descriptor, shares *yaml.Node) {
	if d.key == "" {
		r.FailAt(d.at.line, "a descriptor must have a key")
	}
	if d.shadow && (d.rate == nil || d.rate.unlimited) {
		r.note(d.shadowAt, "shadow_mode has no effect there without a limit, and is left out; remove it")
	}
	switch {
	case shares == nil:
	case !strings.Contains(d.composite(), "*"):
		r.Fail(shares, "share_threshold needs a value with *, got "+yamlfile.Quote(d.value))
	default:
		r.note(r.of(shares), "share_threshold is not translated: here each value like "+yamlfile.Quote(d.value)+
			" counts by itself; to count them together, send "+yamlfile.Quote(d.value)+" instead of the value")
	}
}

// misplaced refuses an unknown field, and notes one that belongs elsewhere, which has no effect there.
func (r *reader) misplaced(key *yaml.Node, what string) {
	switch key.Value {
	case "domain", "key", "value", "descriptors", "rate_limit", "unit", "requests_per_unit", "unlimited",
		"shadow_mode", "quota_mode", "name", "replaces", "detailed_metric", "value_to_metric",
		"share_threshold", "metadata":
		r.note(r.of(key), key.Value+" has no effect in "+what+" there, and is left out; move it")
	default:
		r.Fail(key, "unknown field "+yamlfile.Quote(key.Value)+" in "+what)
	}
}
