package persist

import (
	"encoding/binary"
	"errors"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A payload is records, one behind the other. Each says what is so from then on, whatever was before, so that it does no harm
// to read one again:
//
//	head: u8 | [database: uvarint] | length of the key: uvarint | key | state
//
// The head's low four bits are the kind of record; bit 4 is set where a database's number follows, which is 0 otherwise. The
// state of a funnel is its TAT, 8 bytes, and that of another limiter as limiter.AppendState has it, which came with format 2.
// That a key is gone has no state, and that all keys are gone no key either.
const (
	recordGone    = 0
	recordFunnel  = 1
	recordFlushed = 2
	recordState   = 3

	kindBits    = 0xf
	flagOtherDB = 1 << 4
)

// MaxKeyBytes is how long a key may be: a frame has room for it, and the longest payload, behind other records.
const MaxKeyBytes = 1 << 20

// errRecord is that a payload, whose checksum is right, is not records of this format.
var errRecord = errors.New("persist: not a record of this format")

func appendState(buf []byte, key store.Key, s *limiter.State) []byte {
	if s.Kind == limiter.Funnel {
		buf = appendKey(buf, recordFunnel, key)
		return binary.LittleEndian.AppendUint64(buf, uint64(s.ExpiresNs))
	}
	return limiter.AppendState(appendKey(buf, recordState, key), s)
}

func appendGone(buf []byte, key store.Key) []byte { return appendKey(buf, recordGone, key) }

func appendFlushed(buf []byte) []byte { return append(buf, recordFlushed) }

func appendKey(buf []byte, kind byte, key store.Key) []byte {
	if key.DB == 0 {
		buf = append(buf, kind)
	} else {
		buf = binary.AppendUvarint(append(buf, kind|flagOtherDB), uint64(key.DB))
	}
	return append(binary.AppendUvarint(buf, uint64(len(key.Name))), key.Name...)
}

// record is one that was read. The key's name and the state's payload are parts of what it was read from.
type record struct {
	kind  byte
	key   store.Key
	state limiter.State
}

// readRecord returns the record that b, which is not empty, begins with, and what is behind it.
func readRecord(b []byte) (r record, rest []byte, err error) {
	head, b := b[0], b[1:]
	r.kind = head & kindBits
	if head&^(kindBits|flagOtherDB) != 0 || r.kind > recordState {
		return record{}, nil, errRecord
	}
	if r.kind == recordFlushed {
		return r, b, nil
	}
	if head&flagOtherDB != 0 {
		db, n := binary.Uvarint(b)
		if n <= 0 || db == 0 || db > 1<<16-1 {
			return record{}, nil, errRecord
		}
		r.key.DB, b = uint16(db), b[n:]
	}
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return record{}, nil, errRecord
	}
	r.key.Name, b = b[n:n+int(length)], b[n+int(length):]
	switch r.kind {
	case recordFunnel:
		if len(b) < 8 {
			return record{}, nil, errRecord
		}
		r.state.ExpiresNs, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	case recordState:
		var ok bool
		if r.state, b, ok = limiter.ReadState(b); !ok {
			return record{}, nil, errRecord
		}
	}
	return r, b, nil
}
