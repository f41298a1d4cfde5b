package shard

// A table is an extendible hash table without locks; the shard above it has the lock. It is made of segments of
// a fixed size that split and merge one at a time, so no operation pays for the whole table and old and new
// never stand side by side. A segment's slots hold no pointers, so the collector does not look into them.
//
// The directory maps a hash's leading bits (those that did not choose the shard) to a segment; the hash's low
// bits are an entry's home slot in it. The home never changes while the table grows and shrinks.
type table struct {
	directory []*segment // 1<<depth entries; a segment of a lesser depth stands in several
	depth     uint8
	atDepth   [maxDepth + 1]int // how many segments there are of each depth
	count     int
}

const (
	segmentSlots = 128
	segmentFull  = segmentSlots * 7 / 8
	slotMask     = segmentSlots - 1
	// Two segments merge when together they fill no more than this, well below segmentFull, so that a table at
	// the edge does not split and merge in turns.
	segmentSparse = segmentSlots / 2
	// maxDepth is out of reach: 2^40 segments. Hashes are seeded, so nobody can aim keys at one segment.
	maxDepth = 40

	inlineKeyBytes = 20
	longKey        = 0xff // keyLen of an entry whose key is in its segment's long
)

type segment struct {
	long  []string // keys that do not fit into a slot; "" is a free place. The only pointer, and first: the collector looks no further
	used  uint8
	depth uint8 // how many leading bits its entries share
	slots [segmentSlots]slot
}

// A slot is 40 bytes. Its kind is 0 while it is empty.
type slot struct {
	hash   uint64
	tatNs  int64
	key    [inlineKeyBytes]byte // or, in the first byte, a place in its segment's long
	db     uint16
	kind   kind
	keyLen uint8
}

// kind says what an entry's state means.
type kind uint8

const (
	kindNone kind = iota
	kindFunnel
)

// keyRef is a key as the table looks it up.
type keyRef struct {
	hash uint64
	name []byte
	db   uint16
}

// find returns a key's segment and slot, or nil.
func (t *table) find(k keyRef) (*segment, uint64) {
	if t.count == 0 {
		return nil, 0
	}
	seg := t.segmentOf(k.hash)
	for i := k.hash & slotMask; ; i = (i + 1) & slotMask {
		s := &seg.slots[i]
		if s.kind == kindNone {
			return nil, 0
		}
		if s.hash == k.hash && s.db == k.db && seg.holds(s, k.name) {
			return seg, i
		}
	}
}

func (g *segment) holds(s *slot, name []byte) bool {
	if s.keyLen == longKey {
		return g.long[s.key[0]] == string(name)
	}
	return string(s.key[:s.keyLen]) == string(name)
}

// set stores the TAT of a key that find answered seg and i for. One that is not after nowNs removes the key.
func (t *table) set(k keyRef, seg *segment, i uint64, nowNs, tatNs int64) {
	switch {
	case tatNs <= nowNs && seg != nil:
		t.remove(seg, i)
	case tatNs <= nowNs:
	case seg != nil:
		seg.slots[i].tatNs = tatNs
	default:
		t.insert(k, kindFunnel, tatNs)
	}
}

// insert adds a key that find did not find.
func (t *table) insert(k keyRef, kind kind, tatNs int64) {
	if t.directory == nil {
		t.directory = []*segment{{}}
		t.atDepth[0] = 1
	}
	seg := t.segmentOf(k.hash)
	for seg.used >= segmentFull && seg.depth < maxDepth {
		t.split(seg, k.hash)
		seg = t.segmentOf(k.hash)
	}
	s := slot{hash: k.hash, tatNs: tatNs, db: k.db, kind: kind}
	if len(k.name) <= inlineKeyBytes {
		s.keyLen = uint8(copy(s.key[:], k.name))
	} else {
		s.keyLen = longKey
		s.key[0] = seg.keep(string(k.name))
	}
	seg.place(s)
	t.count++
}

// remove empties the slot at i and moves what follows it back towards home, so that no probe ends early.
func (t *table) remove(seg *segment, i uint64) {
	if s := &seg.slots[i]; s.keyLen == longKey {
		seg.long[s.key[0]] = ""
	}
	gap := i
	for j := (i + 1) & slotMask; seg.slots[j].kind != kindNone; j = (j + 1) & slotMask {
		home := seg.slots[j].hash & slotMask
		if (j-home)&slotMask >= (j-gap)&slotMask {
			seg.slots[gap] = seg.slots[j]
			gap = j
		}
	}
	seg.slots[gap] = slot{}
	seg.used--
	t.count--
}

func (t *table) segmentOf(hash uint64) *segment {
	return t.directory[prefix(hash)>>(64-t.depth)]
}

// prefix drops the bits of a hash that chose the shard.
func prefix(hash uint64) uint64 { return hash << shardBits }

func (g *segment) place(s slot) {
	i := s.hash & slotMask
	for g.slots[i].kind != kindNone {
		i = (i + 1) & slotMask
	}
	g.slots[i] = s
	g.used++
}

// keep stores a long key and returns its place. There are never more of them than slots.
func (g *segment) keep(name string) (place uint8) {
	for i := range g.long {
		if g.long[i] == "" {
			g.long[i] = name
			return uint8(i)
		}
	}
	g.long = append(g.long, name)
	return uint8(len(g.long) - 1)
}

// move places another segment's entry in this one.
func (g *segment) move(from *segment, s slot) {
	if s.keyLen == longKey {
		s.key[0] = g.keep(from.long[s.key[0]])
	}
	g.place(s)
}

// split divides a segment by the first bit that its entries need not share.
func (t *table) split(seg *segment, hash uint64) {
	if seg.depth == t.depth {
		t.doubleDirectory()
	}
	depth := seg.depth + 1
	halves := [2]*segment{{depth: depth}, {depth: depth}}
	for i := range seg.slots {
		if s := &seg.slots[i]; s.kind != kindNone {
			halves[prefix(s.hash)>>(64-depth)&1].move(seg, *s)
		}
	}
	t.atDepth[seg.depth]--
	t.atDepth[depth] += 2
	first, span := t.directoryRange(hash, seg.depth)
	for i := range span {
		t.directory[first+i] = halves[i/(span/2)]
	}
}

// merge joins the segment at the prefix with its other half, where both are sparse, and reports whether it did.
func (t *table) merge(at uint64) bool {
	seg := t.directory[at>>(64-t.depth)]
	if seg.depth == 0 {
		return false
	}
	other := t.directory[(at^1<<(64-seg.depth))>>(64-t.depth)]
	if other.depth != seg.depth || int(seg.used)+int(other.used) > segmentSparse {
		return false
	}
	for i := range other.slots {
		if s := &other.slots[i]; s.kind != kindNone {
			seg.move(other, *s)
		}
	}
	t.atDepth[seg.depth] -= 2
	seg.depth--
	t.atDepth[seg.depth]++
	first, span := t.directoryRange(at>>shardBits, seg.depth)
	for i := range span {
		t.directory[first+i] = seg
	}
	for t.depth > 0 && t.atDepth[t.depth] == 0 {
		t.halveDirectory()
	}
	return true
}

// directoryRange returns where in the directory a segment of the depth stands that holds the hash.
func (t *table) directoryRange(hash uint64, depth uint8) (first, span int) {
	span = 1 << (t.depth - depth)
	return int(prefix(hash)>>(64-t.depth)) &^ (span - 1), span
}

func (t *table) doubleDirectory() {
	d := make([]*segment, 2*len(t.directory))
	for i := range d {
		d[i] = t.directory[i/2]
	}
	t.directory, t.depth = d, t.depth+1
}

func (t *table) halveDirectory() {
	d := make([]*segment, len(t.directory)/2)
	for i := range d {
		d[i] = t.directory[2*i]
	}
	t.directory, t.depth = d, t.depth-1
}

// segmentAfter returns the segment at a prefix and the prefix of the one after it, 0 after the last. A walk by
// prefixes stays right when segments split and merge under it.
func (t *table) segmentAfter(at uint64) (seg *segment, next uint64) {
	seg = t.directory[at>>(64-t.depth)]
	width := uint64(1) << (64 - seg.depth) // 0 for depth 0: the only segment is the last
	return seg, (at &^ (width - 1)) + width
}

func (t *table) segments() (n int) {
	for _, c := range t.atDepth {
		n += c
	}
	return n
}

// removeWhere removes the entries of a segment that the condition holds for.
func (t *table) removeWhere(seg *segment, cond func(*slot) bool) (removed int) {
	for i := uint64(0); i < segmentSlots; {
		if s := &seg.slots[i]; s.kind != kindNone && cond(s) {
			t.remove(seg, i) // may move another entry here: look again
			removed++
			continue
		}
		i++
	}
	return removed
}
