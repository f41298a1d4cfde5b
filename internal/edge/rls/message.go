package rls

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"cellserver/internal/edge/rls/rlspb"
)

// Bounds of a request:
const (
	maxDescriptors = 128
	maxEntries     = 128 // of all descriptors together
	// maxFields is more than twice what that many descriptors and entries have: others are unknown ones.
	maxFields = 4096
)

// message is a request as it has arrived.
type message []byte

// decode decodes a message whose parts are few.
func (m message) decode() (*rlspb.RateLimitRequest, error) {
	r := &rlspb.RateLimitRequest{}
	if err := m.decodeInto(r); err != nil {
		return nil, err
	}
	return r, nil
}

// decodeInto decodes it into a message whose domain and descriptors have the numbers that they have there.
func (m message) decodeInto(r proto.Message) error {
	if err := (&parts{}).count(m, request); err != nil {
		return err
	}
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(m, r) != nil {
		return errMalformed
	}
	return nil
}

// parts counts what a message has, as a part of two bytes is decoded into fifty times as many.
type parts struct{ descriptors, entries, fields int }

// within is a message whose fields are counted.
type within uint8

const (
	request within = iota
	descriptor
	override // the limit of a descriptor
	leaf     // an entry or a number
)

func (p *parts) count(b []byte, in within) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType { // no message has groups
			return errMalformed
		}
		if p.fields++; p.fields > maxFields {
			return errManyFields
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return errMalformed
		}
		if kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(b)
			if err := p.countInner(inner, in, field); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// countInner counts a field that may be a message, by its number.
func (p *parts) countInner(b []byte, in within, field protowire.Number) error {
	inner := leaf
	switch {
	case in == request && field == 2:
		if p.descriptors++; p.descriptors > maxDescriptors {
			return errTooMany
		}
		inner = descriptor
	case in == descriptor && field == 1:
		if p.entries++; p.entries > maxEntries {
			return errManyEntries
		}
	case in == descriptor && field == 2:
		inner = override
	case in == descriptor && field == 3, in == override && field == 3:
	default: // text, or unknown
		return nil
	}
	return p.count(b, inner)
}
