// Package changes drains a store's changes once, for all that follow them: a disk, and other servers. Pieces
// of records wait for each follower, so none holds up another. A Gatherer is safe for concurrent use, a Feed
// for one goroutine at a time; the functions that encode and read records are safe for concurrent use.
package changes

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

const (
	// pieceBytes is the size at which a piece is complete.
	pieceBytes = 128 << 10
	// keptBuffers is the number of buffers kept for later pieces.
	keptBuffers = 4
)

// Gatherer gathers changes in rounds.
type Gatherer struct {
	tracker store.Tracker
	now     func() int64

	mu     sync.Mutex // rank 35: guards all below, but not hurrying
	feeds  []*Feed
	cursor int // of the current round; 0 between rounds
	ended  uint64
	piece  *piece // under construction; nil for none
	begun  bool   // a piece of the round was complete
	free   [][]byte

	hurrying sync.RWMutex // rank 60: guards hurries: the store calls them under its locks
	hurries  []func()
}

// piece is shared by the feeds.
type piece struct {
	Piece
	readers int
}

// Piece is a part of a round.
type Piece struct {
	Records []byte
	Count   int   // of the records
	ClockNs int64 // not before any time of the records
	End     bool  // of the round
}

// New returns the Gatherer of a store. Until there is a Feed, the store tracks nothing.
func New(t store.Tracker, now func() int64) *Gatherer { return &Gatherer{tracker: t, now: now} }

// Feed has the pieces for one follower.
type Feed struct {
	gatherer  *Gatherer
	mostBytes int
	pieces    []*piece
	bytes     int
	within    bool // a round, of which some pieces are taken
	lost      bool // changes
}

// NewFeed returns a Feed of all later changes. hurry is called, from any goroutine and under locks, when a
// round is needed soon; it must not wait. A Feed with more than mostBytes of pieces loses all.
func (g *Gatherer) NewFeed(hurry func(), mostBytes int) *Feed {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.feeds) == 0 {
		g.tracker.Track(g.hurry)
	}
	g.finishLocked(g.ended + 1)
	f := &Feed{gatherer: g, mostBytes: mostBytes}
	g.feeds = append(g.feeds, f)
	g.hurrying.Lock()
	defer g.hurrying.Unlock()
	g.hurries = append(g.hurries, hurry)
	return f
}

func (f *Feed) Close() {
	g := f.gatherer
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.feeds, f)
	f.clearLocked()
	g.feeds = slices.Delete(g.feeds, i, i+1)
	g.hurrying.Lock()
	defer g.hurrying.Unlock()
	g.hurries = slices.Delete(g.hurries, i, i+1)
}

func (g *Gatherer) hurry() {
	g.hurrying.RLock()
	defer g.hurrying.RUnlock()
	for _, hurry := range g.hurries {
		hurry()
	}
}

// Round calls do with all pieces up to the end of a round that begins now, without locks. complete is false
// if changes were lost. After an error of do the other pieces remain.
func (f *Feed) Round(do func(p Piece) error) (complete bool, err error) {
	g := f.gatherer
	g.mu.Lock()
	until := g.nextLocked()
	g.mu.Unlock()
	for {
		p := f.take(until)
		if p == nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			complete, f.lost = !f.lost, false
			return complete, nil
		}
		err := do(p.Piece)
		g.mu.Lock()
		g.releaseLocked(p)
		g.mu.Unlock()
		if err != nil {
			return true, err
		}
	}
}

// Reset drops all changes up to now.
func (f *Feed) Reset() {
	g := f.gatherer
	g.mu.Lock()
	defer g.mu.Unlock()
	g.finishLocked(g.nextLocked())
	f.clearLocked()
	f.lost = false
}

// nextLocked returns the number of the next round to begin.
func (g *Gatherer) nextLocked() uint64 {
	if g.cursor != 0 {
		return g.ended + 2
	}
	return g.ended + 1
}

// finishLocked gathers to the end of a round.
func (g *Gatherer) finishLocked(round uint64) {
	for g.ended < round {
		g.stepLocked()
	}
}

// take returns the next piece, or nil at the end of a round.
func (f *Feed) take(until uint64) *piece {
	g := f.gatherer
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(f.pieces) == 0 {
		if g.ended >= until && !f.within { // another follower may have begun a round
			return nil
		}
		g.stepLocked()
	}
	p := f.pieces[0]
	f.within = !p.End
	f.pieces[0], f.pieces = nil, f.pieces[1:]
	f.bytes -= len(p.Records)
	return p
}

func (g *Gatherer) releaseLocked(p *piece) {
	if p.readers--; p.readers == 0 && len(g.free) < keptBuffers {
		g.free = append(g.free, p.Records[:0])
	}
}

func (f *Feed) clearLocked() {
	for _, p := range f.pieces {
		f.gatherer.releaseLocked(p)
	}
	f.pieces, f.bytes, f.within = nil, 0, false
}

// stepLocked gathers a part of a round.
func (g *Gatherer) stepLocked() {
	nowNs := g.now()
	var complete bool
	g.cursor, complete = g.tracker.Changes(nowNs, g.cursor, func(c store.Change) {
		if g.piece == nil {
			g.piece = g.newPiece()
		}
		Expire(&c, g.now)
		g.piece.Records = Append(g.piece.Records, nowNs, &c)
		if g.piece.Count++; len(g.piece.Records) >= pieceBytes {
			g.giveLocked(false)
		}
	})
	if !complete {
		for _, f := range g.feeds {
			f.lost = true
		}
	}
	if g.cursor != 0 {
		return
	}
	if g.ended++; g.begun || g.piece != nil {
		g.giveLocked(true)
	}
	g.begun = false
}

func (g *Gatherer) newPiece() *piece {
	p := &piece{}
	if n := len(g.free); n > 0 {
		p.Records, g.free = g.free[n-1], g.free[:n-1]
	}
	return p
}

func (g *Gatherer) giveLocked(end bool) {
	p := g.piece
	if p == nil {
		p = g.newPiece()
	}
	g.piece, g.begun = nil, true
	p.ClockNs, p.End, p.readers = g.now(), end, len(g.feeds)
	for _, f := range g.feeds {
		f.pieces = append(f.pieces, p)
		if f.bytes += len(p.Records); f.bytes > f.mostBytes {
			f.clearLocked()
			f.lost = true
		}
	}
}

// A payload, in files and between servers, is a sequence of records. Each states what holds from then on, so
// reading one twice is harmless:
//
//	head: u8 | [database: uvarint] | length of the key: uvarint | key | state
//
// or what was spent under a limit on a day, since format 7:
//
//	head: u8 | length of the name: uvarint | name | day: varint | units: varint
//
// The head's low four bits are the kind of record; bit 4 announces a database number other than 0. A funnel's
// state is its TAT in 8 bytes, another limiter's limiter.AppendState's, since format 2. A removed key has no
// state, and the removal of all keys no key either.
const (
	recordGone    = 0
	recordFunnel  = 1
	recordFlushed = 2
	recordState   = 3
	recordSpent   = 4

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
	case c.Spent != nil:
		buf = appendKey(buf, recordSpent, store.Key{Name: []byte(c.Spent.Limit)})
		return binary.AppendVarint(binary.AppendVarint(buf, int64(c.Spent.Day)), c.Spent.Units)
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

// Together has room for the changes that go to a store in one call.
type Together [256]store.Change

// Read is like the function Read, with many changes at a time, which visit must not keep.
func (t *Together) Read(records []byte, visit func(some []store.Change)) error {
	some := t[:0]
	err := Read(records, func(c store.Change) {
		if some = append(some, c); len(some) == len(t) {
			visit(some)
			some = some[:0]
		}
	})
	visit(some)
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
	if head&^(kindBits|flagOtherDB) != 0 || kind > recordSpent {
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
	case recordSpent:
		return readSpent(c.Key, b)
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

func readSpent(of store.Key, b []byte) (c store.Change, rest []byte, err error) {
	day, n := binary.Varint(b)
	if n <= 0 || day != int64(int32(day)) || of.DB != 0 {
		return c, nil, ErrFormat
	}
	units, m := binary.Varint(b[n:])
	if m <= 0 {
		return c, nil, ErrFormat
	}
	at := store.SpentAt{Limit: string(of.Name), Day: int32(day)}
	return store.Change{Spent: &store.Spent{SpentAt: at, Units: units}}, b[n+m:], nil
}
