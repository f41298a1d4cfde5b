package xds

import (
	"errors"
	"strconv"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds/xdspb"
)

// Bounds of an answer, beside Config.MaxMessageBytes:
const (
	// maxMessages bounds what is decoded: a message of two bytes becomes one of a hundred.
	maxMessages   = 500_000
	maxNesting    = 128
	maxLabelBytes = 1 << 10 // of a version, and of a nonce, which requests repeat
)

var (
	errMalformed = errors.New("the answer is malformed")
	errMany      = errors.New("the answer has more than " + strconv.Itoa(maxMessages) + " messages, or deeper than " + strconv.Itoa(maxNesting) +
		" levels; split the configuration")
	errLabel = errors.New("the answer's version or nonce has more than " + strconv.Itoa(maxLabelBytes) + " bytes")
)

// decodeAnswer decodes an answer whose resources are not decoded yet.
func decodeAnswer(b []byte) (*xdspb.DiscoveryResponse, error) {
	answer := &xdspb.DiscoveryResponse{}
	if err := decode(b, answer, &counter{left: maxMessages}); err != nil {
		return nil, err
	}
	if len(answer.VersionInfo) > maxLabelBytes || len(answer.Nonce) > maxLabelBytes {
		return nil, errLabel
	}
	return answer, nil
}

// decodeResources decodes an answer's resources. Names are the control plane's: an error has a number.
func decodeResources(resources []*anypb.Any) ([]*configpb.RateLimitConfig, error) {
	all, parts := make([]*configpb.RateLimitConfig, len(resources)), &counter{left: maxMessages}
	for i, of := range resources {
		if of.TypeUrl != TypeURL {
			return nil, errType("resource "+strconv.Itoa(i), of.TypeUrl)
		}
		all[i] = &configpb.RateLimitConfig{}
		switch err := decode(of.Value, all[i], parts); {
		case errors.Is(err, errMalformed):
			return nil, errors.New("resource " + strconv.Itoa(i) + " cannot be decoded as " + TypeURL)
		case err != nil:
			return nil, err
		}
	}
	return all, nil
}

func errType(what, url string) error {
	return errors.New(what + " is of the type " + strconv.QuoteToASCII(url[:min(len(url), maxTypeBytes)]) + ", want " + TypeURL)
}

const maxTypeBytes = 128 // in an error

// decode decodes a message whose parts are few.
func decode(b []byte, into proto.Message, parts *counter) error {
	if err := parts.count(b, into.ProtoReflect().Descriptor(), 0); err != nil {
		return err
	}
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, into) != nil {
		return errMalformed // the decoder's errors change from process to process
	}
	return nil
}

// counter counts the messages within others before these are decoded.
type counter struct{ left int }

func (c *counter) count(b []byte, of protoreflect.MessageDescriptor, depth int) error {
	if depth > maxNesting {
		return errMany
	}
	fields := of.Fields()
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return errMalformed
		}
		if field := fields.ByNumber(number); kind == protowire.BytesType && field != nil && field.Message() != nil {
			if c.left--; c.left < 0 {
				return errMany
			}
			inner, _ := protowire.ConsumeBytes(b)
			if err := c.count(inner, field.Message(), depth+1); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// codec sends messages, and receives bytes.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Marshal(m any) (mem.BufferSlice, error) {
	b, err := proto.Marshal(m.(proto.Message))
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

func (codec) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*[]byte) = data.Materialize()
	return nil
}
