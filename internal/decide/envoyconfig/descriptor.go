package envoyconfig

import (
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/base/yamlfile"
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
