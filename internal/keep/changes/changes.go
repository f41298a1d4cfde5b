// Package changes drains a store's changes once, for all that follow them: a disk, and other servers. Pieces
// of records wait for each follower, so none holds up another. A Gatherer is safe for concurrent use, a Feed
// for one goroutine at a time; the functions that encode and read records are safe for concurrent use.
package changes

import (
	"slices"
	"sync"

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
			return !f.takeLost(), nil
		}
		err := do(p.Piece)
		f.release(p)
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

func (f *Feed) release(p *piece) {
	f.gatherer.mu.Lock()
	defer f.gatherer.mu.Unlock()
	f.gatherer.releaseLocked(p)
}

func (g *Gatherer) releaseLocked(p *piece) {
	if p.readers--; p.readers == 0 && len(g.free) < keptBuffers {
		g.free = append(g.free, p.Records[:0])
	}
}

func (f *Feed) takeLost() (lost bool) {
	f.gatherer.mu.Lock()
	defer f.gatherer.mu.Unlock()
	lost, f.lost = f.lost, false
	return lost
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

// giveLocked gives the piece to all feeds.
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
