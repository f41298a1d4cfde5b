package envoyconfig

import (
	"errors"

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
	p.fail = func(at Line, text string) { r.FailAt(at.Line, text) }
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

func (r *reader) readLevel(n *yaml.Node, l *Level, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, "descriptors must be a list")
		return
	}
	if !r.mayNest(r.of(n), depth) {
		return
	}
	for _, item := range n.Content {
		if !r.mayAdd(r.of(item)) {
			return
		}
		r.readDescriptor(item, l, path, depth)
	}
}
