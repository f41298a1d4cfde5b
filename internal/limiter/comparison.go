package limiter

import (
	"bytes"
	"errors"
	"strconv"

	"cellserver/internal/limiter/value"
)

var (
	// ErrComparison reports a comparison by an unknown name. Nothing has changed.
	ErrComparison = errors.New("limiter: unknown comparison")
	// ErrDigest reports a digest of another length. Nothing has changed.
	ErrDigest = errors.New("limiter: a digest has 16 hexadecimal characters")
)

// Comparison is a condition on what GET returns of a key.
type Comparison struct {
	By   Relation
	With []byte // a value, or a digest
}

// Relation is how a value or its digest is to be.
type Relation uint8

const (
	UnknownRelation Relation = iota
	Equal
	NotEqual
	DigestEqual
	DigestNotEqual
)

// NeedsValue reports whether no absent key is so.
func (r Relation) NeedsValue() bool { return r == Equal || r == DigestEqual }

// Copy returns a Comparison that outlasts the command; nil for nil.
func (c *Comparison) Copy() *Comparison {
	if c == nil {
		return nil
	}
	return &Comparison{By: c.By, With: bytes.Clone(c.With)}
}

// Holds compares a live state; see ReadableText for its errors.
func (c *Comparison) Holds(s *State, nowNs int64) (bool, error) {
	var digits [20]byte
	text, err := ReadableText(digits[:0], s, nowNs)
	if err != nil {
		return false, err
	}
	switch c.By {
	case Equal:
		return bytes.Equal(text, c.With), nil
	case NotEqual:
		return !bytes.Equal(text, c.With), nil
	case DigestEqual, DigestNotEqual:
		if len(c.With) != value.DigestBytes {
			return false, ErrDigest
		}
		digest := value.Digest(text)
		return bytes.EqualFold(digest[:], c.With) == (c.By == DigestEqual), nil
	case UnknownRelation:
	}
	return false, ErrComparison
}

// ReadableText returns what GET returns of a live state: a part of the payload, or a number appended to
// digits, by the store's clock. It returns ErrWrongType for a state that GET cannot read.
func ReadableText(digits []byte, s *State, nowNs int64) ([]byte, error) {
	if s.Kind == Value {
		return ValueText(digits, s), nil
	}
	tatNs, err := s.TAT(nowNs)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(digits, tatNs, 10), nil
}
