package rls

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
)

// nearRatio is envoyproxy/ratelimit's NEAR_LIMIT_RATIO, by default.
const nearRatio = 0.8

// maxNear bounds the names in a response.
const maxNear = 32

// beyondNear returns the hits of a decided descriptor's limit beyond that share of it.
func (a *applied) beyondNear(ratio float32) int64 {
	near := int64(float32(a.rate.count) * ratio)
	return int64(a.rate.count) - a.result.Remaining - near
}

// isNear reports whether a descriptor is allowed near its limit. In shadow mode it is near, too, where it
// would be denied.
func (a *applied) isNear(ratio float32) bool {
	switch {
	case a.what < zero:
		return false
	case a.result.Limited:
		return a.isShadow()
	default:
		return a.beyondNear(ratio) > 0
	}
}

// near returns the names of limits near which descriptors are allowed, each once. A limit without a name has
// that of its rule in the metrics; one that the request brings, the descriptor's keys.
func (p *plan) near(ratio float32) (names []string) {
	for i := range p.applied {
		a := &p.applied[i]
		if !a.isNear(ratio) {
			continue
		}
		name := a.rate.name
		if name == "" && a.match.Descriptor != nil {
			name = a.match.Path
		}
		if name == "" {
			name = keysOf(p.request.Descriptors[i])
		}
		if !slices.Contains(names, name) && len(names) < maxNear {
			names = append(names, name)
		}
	}
	return names
}

func keysOf(d *rlspb.RateLimitDescriptor) string {
	keys := make([]string, len(d.Entries))
	for i, e := range d.Entries {
		keys[i] = e.GetKey()
	}
	return strings.Join(keys, ".")
}

func nearHeader(names []string) *rlspb.HeaderValue {
	return &rlspb.HeaderValue{Key: "x-ratelimit-near", Value: string(door.AppendNames(nil, names))}
}

func nearList(names []string) *structpb.Value {
	all := make([]*structpb.Value, len(names))
	for i, name := range names {
		all[i] = validText(name)
	}
	return structpb.NewListValue(&structpb.ListValue{Values: all})
}
