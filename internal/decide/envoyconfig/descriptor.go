package envoyconfig

import (
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/wire/glob"
)

func (r *reader) readDescriptor(item *yaml.Node, l *Level, path string, depth int) {
	n := yamlfile.Resolve(item)
	d := &Descriptor{At: r.of(n), fields: map[string]Line{}}
	var list *yaml.Node
	before := r.Count()
	r.fields(n, "a descriptor", func(key, value *yaml.Node) {
		d.fields[key.Value] = r.of(key)
		switch key.Value {
		case "key":
			d.Key = r.text(value, "key")
		case "value":
			d.Value = r.text(value, "value")
		case "rate_limit":
			d.Rate = r.readRate(value)
		case "descriptors":
			list = value
		case "metadata":
			d.Metadata = r.readMetadata(value)
		default:
			r.readFlag(d, key, value)
		}
	})
	if r.Count() > before {
		return
	}
	r.check(d)
	d.Path = path + d.Composite()
	r.add(l, d)
	if list != nil {
		r.readLevel(list, &d.Below, d.Path+".", depth+1)
	}
}

func (r *reader) readFlag(d *Descriptor, key, value *yaml.Node) {
	flag := map[string]*bool{
		"shadow_mode": &d.Shadow, "quota_mode": &d.Quota, "share_threshold": &d.Shared,
		"detailed_metric": &d.Detailed, "value_to_metric": &d.ValueToMetric,
	}[key.Value]
	if flag == nil {
		r.misplaced(key, "a descriptor")
		return
	}
	*flag = r.yes(value, key.Value)
}

// readMetadata returns nil for an empty mapping.
func (r *reader) readMetadata(n *yaml.Node) *structpb.Struct {
	if n.Kind != yaml.MappingNode {
		r.Fail(n, "metadata must be a mapping")
		return nil
	}
	var fields map[string]any
	if err := n.Decode(&fields); err != nil {
		r.Fail(n, "metadata must have words as keys, and plain values")
		return nil
	}
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		r.Fail(n, "metadata must have words as keys, and plain values: texts, numbers, true, false, lists and mappings")
		return nil
	}
	if len(fields) == 0 {
		return nil
	}
	return metadata
}

func (r *reader) check(d *Descriptor) {
	if d.Key == "" {
		r.FailAt(d.At.Line, "a descriptor must have a key")
	}
	if d.Shadow && (d.Rate == nil || d.Rate.Unlimited) {
		r.note(d.FieldAt("shadow_mode"), "shadow_mode has no effect without a limit; remove it")
	}
	if d.Shared && !d.isWild() {
		r.FailAt(d.FieldAt("share_threshold").Line, "share_threshold needs a value with *, got "+yamlfile.QuoteWord(d.Value))
	}
}

func (d *Descriptor) isWild() bool { return strings.Contains(d.Composite(), "*") }

// add adds a descriptor, or reports one of the same key and value.
func (r *reader) add(l *Level, d *Descriptor) {
	if l.byComposite == nil {
		l.byComposite = map[string]*Descriptor{}
	}
	composite := d.Composite()
	if first, found := l.byComposite[composite]; found {
		r.FailAt(d.At.Line, "descriptor "+yamlfile.QuoteWord(composite)+" is in "+first.At.String()+" already; remove one")
		return
	}
	l.byComposite[composite] = d
	l.All = append(l.All, d)
	if d.isWild() {
		d.pattern = glob.Compile([]byte(Glob(composite)))
		l.wild = append(l.wild, d)
	}
}
