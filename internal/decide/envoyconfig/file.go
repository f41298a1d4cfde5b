package envoyconfig

import (
	"errors"
	"strconv"

	"go.yaml.in/yaml/v4"

	"cellserver/internal/base/yamlfile"
)

type reader struct {
	*parser
	yamlfile.File
	file int
}

// read reads a file and adds its domain.
func (p *parser) read(f *File, file int) {
	r := reader{p, yamlfile.File{Path: f.Path}, file}
	if root := r.Root(f.Text); root != nil {
		r.readRoot(root)
	} else if r.Count() == 0 {
		r.FailAt(1, "the file is empty; domain is missing")
	}
	if problems := (yamlfile.Problems)(nil); errors.As(r.Err(), &problems) {
		p.problems = append(p.problems, problems...)
	}
}

func (r *reader) of(n *yaml.Node) Line { return Line{r.file, r.Path, n.Line} }

func (r *reader) note(at Line, text string) { r.rules.Notes = append(r.rules.Notes, Note{at, text}) }

func (r *reader) readRoot(n *yaml.Node) {
	name, together, at := "", false, Line{}
	var list *yaml.Node
	r.fields(n, "the file", func(key, value *yaml.Node) {
		switch key.Value {
		case "domain":
			name = r.text(value, "domain")
		case "descriptors":
			list = value
		case "all_or_nothing":
			together, at = r.yes(value, "all_or_nothing"), r.of(key)
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
	d := r.domain(name, r.of(n))
	if d == nil {
		return
	}
	if together {
		d.AllOrNothing, d.TogetherAt = true, at
	}
	if list != nil {
		r.readLevel(list, &d.Top, "", 1)
	}
}

// domain returns the domain to add to, or nil after an error.
func (r *reader) domain(name string, at Line) *Domain {
	switch d := r.rules.Domain(name); {
	case d == nil:
		d = &Domain{Name: name, At: at}
		r.rules.Domains, r.rules.byName[name] = append(r.rules.Domains, d), d
		return d
	case r.options.MergeDomains:
		return d
	default:
		r.FailAt(at.Line, "domain "+yamlfile.QuoteWord(name)+" is in "+d.At.String()+" already; merge the files (limits import has --merge-domains)")
		return nil
	}
}

func (r *reader) readLevel(n *yaml.Node, l *Level, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, "descriptors must be a list")
		return
	}
	if depth > maxDepth {
		r.Fail(n, "descriptors nest deeper than "+strconv.Itoa(maxDepth)+" levels")
		return
	}
	for _, item := range n.Content {
		if r.descriptors++; r.descriptors > MaxDescriptors {
			if r.descriptors == MaxDescriptors+1 {
				r.Fail(item, "more than "+strconv.Itoa(MaxDescriptors)+" descriptors; split the configuration")
			}
			return
		}
		r.readDescriptor(item, l, path, depth)
	}
}
