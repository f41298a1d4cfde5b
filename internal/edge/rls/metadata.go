package rls

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/edge/rls/rlspb"
)

// metadata returns the dynamic metadata: the request, and the metadata of the limits that it passed.
func (p *plan) metadata(statuses []*rlspb.RateLimitResponse_DescriptorStatus) *structpb.Struct {
	descriptors := make([]*structpb.Value, len(p.request.Descriptors))
	passed := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i, d := range p.request.Descriptors {
		descriptors[i] = structpb.NewStructValue(described(d))
		a := &p.applied[i]
		if a.what >= zero && a.match.Descriptor != nil && statuses[i].Code == rlspb.RateLimitResponse_OK {
			merge(passed, a.match.Metadata)
		}
	}
	fields := map[string]*structpb.Value{
		"domain":      validText(p.request.Domain),
		"descriptors": structpb.NewListValue(&structpb.ListValue{Values: descriptors}),
	}
	if hits := p.request.HitsAddend; hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	if len(passed.Fields) > 0 {
		fields["metadata"] = structpb.NewStructValue(passed)
	}
	return &structpb.Struct{Fields: fields}
}

// described returns a descriptor as it is written there.
func described(d *rlspb.RateLimitDescriptor) *structpb.Struct {
	entries := make([]*structpb.Value, len(d.Entries))
	for i, e := range d.Entries {
		entries[i] = validText(e.GetKey() + "=" + e.GetValue())
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(&structpb.ListValue{Values: entries})}
	if d.Limit != nil {
		fields["limit"] = structpb.NewStringValue(d.Limit.String())
	}
	if d.HitsAddend != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(d.HitsAddend.Value))
	}
	return &structpb.Struct{Fields: fields}
}

// validText returns a text for a message, which must be UTF-8.
func validText(s string) *structpb.Value {
	return structpb.NewStringValue(strings.ToValidUTF8(s, replacement))
}

// replacement is in the place of bytes that are not UTF-8.
const replacement = "\ufffd"

// merge adds fields to those of earlier limits, which stay; mappings are merged. It changes no mapping of
// from, which the configuration shares.
func merge(to, from *structpb.Struct) {
	for name, value := range from.GetFields() {
		mapping := value.GetStructValue()
		switch present := to.Fields[name]; {
		case present == nil && mapping != nil:
			own := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			merge(own, mapping)
			to.Fields[name] = structpb.NewStructValue(own)
		case present == nil:
			to.Fields[name] = value
		case present.GetStructValue() != nil && mapping != nil:
			merge(present.GetStructValue(), mapping)
		}
	}
}
