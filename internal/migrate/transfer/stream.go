package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"cellserver/internal/limiter"
)

const (
	streamMagic  = "CELLDUMP"
	streamFormat = 6 // what this version writes
	funnelsOnly  = 1 // has no other limiters

	blockOfKeys = "KEYS"
	blockOfEnd  = "END\n"

	headerBytes      = 8 + 4 + 8
	blockHeaderBytes = 4 + 4
	sumBytes         = 4

	// blockBytes is the size of a block, except for one long record.
	blockBytes = 64 << 10
	// maxBlockBytes exceeds a block with the longest key that a server accepts.
	maxBlockBytes = 1<<30 + 1<<20
)

// StreamWriter writes a stream: a header, blocks of records, and an end; see docs/design/dump-format.md.
// limiter.AppendState encodes the states in the records.
type StreamWriter struct {
	w     io.Writer
	block []byte
	count uint64
	sum   uint32
}

// NewStreamWriter writes the header.
func NewStreamWriter(w io.Writer, clockNs int64) (*StreamWriter, error) {
	s := &StreamWriter{w: w}
	le := binary.LittleEndian
	header := le.AppendUint64(le.AppendUint32([]byte(streamMagic), streamFormat), uint64(clockNs))
	return s, s.append(header)
}

// append writes b and the sum.
func (s *StreamWriter) append(b []byte) error {
	s.sum = crc32.Update(s.sum, castagnoli(), b)
	_, err := s.w.Write(binary.LittleEndian.AppendUint32(b, s.sum))
	return err
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
func (s *StreamWriter) Write(e Entry) error {
	if len(s.block) == 0 {
		s.block = append(append(s.block, blockOfKeys...), 0, 0, 0, 0)
	}
	s.block = binary.AppendUvarint(s.block, uint64(e.Key.DB))
	s.block = append(binary.AppendUvarint(s.block, uint64(len(e.Key.Name))), e.Key.Name...)
	s.block = limiter.AppendState(s.block, &e.State)
	s.count++
	if len(s.block) < blockBytes {
		return nil
	}
	return s.flush()
}

func (s *StreamWriter) flush() error {
	if len(s.block) == 0 {
		return nil
	}
	b := s.block
	s.block = b[:0]
	binary.LittleEndian.PutUint32(b[len(blockOfKeys):], uint32(len(b)-blockHeaderBytes))
	return s.append(b)
}

// Close writes the end.
func (s *StreamWriter) Close() error {
	if err := s.flush(); err != nil {
		return err
	}
	le := binary.LittleEndian
	return s.append(le.AppendUint64(le.AppendUint32([]byte(blockOfEnd), 8), s.count))
}

// StreamReader reads a StreamWriter's output.
type StreamReader struct {
	ClockNs int64 // of the source at the start of the dump

	r      *bufio.Reader
	format uint32
	buf    bytes.Buffer
	block  []byte // unread records
	at     int64  // bytes read
	count  uint64
	sum    uint32
}

// NewStreamReader reads the header.
func NewStreamReader(r io.Reader) (*StreamReader, error) {
	s := &StreamReader{r: bufio.NewReaderSize(r, blockBytes)}
	magic, err := s.r.Peek(len(streamMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case string(magic) == streamMagic:
	case len(magic) > 0 && strings.HasPrefix(streamMagic, string(magic)):
		return nil, fmt.Errorf("%w: it ends at byte %d", ErrDamaged, len(magic))
	default:
		return nil, ErrNoDump
	}
	if err := s.take(headerBytes); err != nil {
		return nil, err
	}
	header := s.buf.Bytes()
	s.format = binary.LittleEndian.Uint32(header[8:])
	s.ClockNs = int64(binary.LittleEndian.Uint64(header[12:]))
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.format > streamFormat {
		return nil, fmt.Errorf("%w: format %d", ErrNewer, s.format)
	}
	return s, nil
}

// take appends n bytes to buf, allocating no more than arrive.
func (s *StreamReader) take(n int64) error {
	got, err := io.CopyN(&s.buf, s.r, n)
	s.at += got
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends at byte %d, before its end mark", ErrDamaged, s.at)
	}
	return err
}

// check verifies the sum of buf.
func (s *StreamReader) check() error {
	s.sum = crc32.Update(s.sum, castagnoli(), s.buf.Bytes())
	n := s.buf.Len()
	if err := s.take(sumBytes); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(s.buf.Bytes()[n:]); got != s.sum {
		return s.damaged("wrong checksum before it")
	}
	s.buf.Truncate(n)
	return nil
}

func (s *StreamReader) damaged(what string) error {
	return fmt.Errorf("%w: byte %d: %s", ErrDamaged, s.at, what)
}

func (s *StreamReader) Read() (Entry, error) {
	for len(s.block) == 0 {
		if err := s.nextBlock(); err != nil {
			return Entry{}, err
		}
	}
	e, rest, ok := readRecord(s.block, s.format)
	if !ok {
		return Entry{}, s.damaged("bad record in the block before it")
	}
	s.block = rest
	s.count++
	return e, nil
}

// nextBlock reads a block, or returns io.EOF after the end.
func (s *StreamReader) nextBlock() error {
	s.buf.Reset()
	if err := s.take(blockHeaderBytes); err != nil {
		return err
	}
	kind, length := string(s.buf.Bytes()[:4]), int64(binary.LittleEndian.Uint32(s.buf.Bytes()[4:]))
	if kind != blockOfKeys && kind != blockOfEnd || length > maxBlockBytes {
		return s.damaged("no block before it")
	}
	if err := s.take(length); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	s.block = s.buf.Bytes()[blockHeaderBytes:]
	if kind == blockOfKeys {
		return nil
	}
	if len(s.block) != 8 || binary.LittleEndian.Uint64(s.block) != s.count {
		return s.damaged("wrong number of records in the end mark before it")
	}
	s.block = nil
	if _, err := s.r.ReadByte(); err == nil {
		return s.damaged("data after the end mark")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return io.EOF
}

// readRecord returns b's first record and the rest.
func readRecord(b []byte, format uint32) (e Entry, rest []byte, ok bool) {
	db, n := binary.Uvarint(b)
	if n <= 0 || db >= 1<<16 {
		return Entry{}, nil, false
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return Entry{}, nil, false
	}
	e.Key.DB, e.Key.Name, b = uint16(db), b[n:n+int(length)], b[n+int(length):]
	if format > funnelsOnly {
		e.State, b, ok = limiter.ReadState(b)
		return e, b, ok
	}
	if len(b) < 8 {
		return Entry{}, nil, false
	}
	e.State.ExpiresNs = int64(binary.LittleEndian.Uint64(b))
	return e, b[8:], true
}
