package changes

import (
	"encoding/binary"
	"errors"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// A payload, in files and between servers, is a sequence of records. Each states what holds from then on, so
// reading one twice is harmless:
//
//	head: u8 | [database: uvarint] | length of the key: uvarint | key | state
//
// The head's low four bits are the kind of record; bit 4 announces a database number other than 0. A funnel's
// state is its TAT in 8 bytes, another limiter's limiter.AppendState's, since format 2. A removed key has no
// state, and the removal of all keys no key either.
const (
	recordGone    = 0
	recordFunnel  = 1
	recordFlushed = 2
	recordState   = 3

	kindBits    = 0xf
	flagOtherDB = 1 << 4
)

// MaxKeyBytes bounds a key: a frame holds it with the longest payload after other records.
const MaxKeyBytes = 1 << 20

// ErrFormat reports bytes of another format.
var ErrFormat = errors.New("record: not a record of this format")

// Append appends the record of a change that is gathered at a time.
func Append(buf []byte, nowNs int64, c *store.Change) []byte {
	switch {
	case c.Flushed:
		return append(buf, recordFlushed)
	case c.State.ExpiresNs <= nowNs:
		return appendKey(buf, recordGone, c.Key)
	case c.State.Kind == limiter.Funnel:
		return binary.LittleEndian.AppendUint64(appendKey(buf, recordFunnel, c.Key), uint64(c.State.ExpiresNs))
	}
	return limiter.AppendState(appendKey(buf, recordState, c.Key), &c.State)
}

// Expire makes a change that of a removed key, if its state has expired by now. A call after the time of a
// gathering may have emptied a key, and such a state cannot be read back.
func Expire(c *store.Change, now func() int64) {
	if c.State.Kind != limiter.Funnel && c.State.ExpiresNs <= now() {
		c.State = limiter.State{}
	}
}

// Read visits the changes of records, whose names and payloads are parts of them.
func Read(records []byte, visit func(c store.Change)) error {
	for len(records) > 0 {
		c, rest, err := readRecord(records)
		if err != nil {
			return err
		}
		visit(c)
		records = rest
	}
	return nil
}

const readTogether = 256

// ReadTogether is Read with a slice of changes at a time, for one call of a store.
func ReadTogether(records []byte, visit func(some []store.Change)) error {
	together := make([]store.Change, 0, readTogether)
	err := Read(records, func(c store.Change) {
		if together = append(together, c); len(together) == cap(together) {
			visit(together)
			together = together[:0]
		}
	})
	visit(together)
	return err
}

func Check(records []byte) error { return Read(records, func(store.Change) {}) }

func appendKey(buf []byte, kind byte, key store.Key) []byte {
	if key.DB == 0 {
		buf = append(buf, kind)
	} else {
		buf = binary.AppendUvarint(append(buf, kind|flagOtherDB), uint64(key.DB))
	}
	return append(binary.AppendUvarint(buf, uint64(len(key.Name))), key.Name...)
}

// readRecord returns the change of the first record of a nonempty b, and the rest.
func readRecord(b []byte) (c store.Change, rest []byte, err error) {
	head, b := b[0], b[1:]
	kind := head & kindBits
	if head&^(kindBits|flagOtherDB) != 0 || kind > recordState {
		return c, nil, ErrFormat
	}
	if kind == recordFlushed {
		return store.Change{Flushed: true}, b, nil
	}
	if head&flagOtherDB != 0 {
		db, n := binary.Uvarint(b)
		if n <= 0 || db == 0 || db > 1<<16-1 {
			return c, nil, ErrFormat
		}
		c.Key.DB, b = uint16(db), b[n:]
	}
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return c, nil, ErrFormat
	}
	c.Key.Name, b = b[n:n+int(length)], b[n+int(length):]
	switch kind {
	case recordFunnel:
		if len(b) < 8 {
			return c, nil, ErrFormat
		}
		c.State.ExpiresNs, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	case recordState:
		var ok bool
		if c.State, b, ok = limiter.ReadState(b); !ok {
			return c, nil, ErrFormat
		}
	}
	return c, b, nil
}
