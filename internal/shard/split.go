package shard

// split moves half of a segment's entries, by the next bit of their hashes, to a new one.
func (t *table) split(seg *segment, hash uint64) {
	if seg.depth == t.depth {
		t.doubleDirectory()
	}
	first, span := t.directoryRange(hash, seg.depth)
	t.atDepth[seg.depth]--
	seg.depth++
	t.atDepth[seg.depth] += 2
	other := &segment{depth: seg.depth}
	t.made++
	t.deal(t.lift(seg), seg, seg, other)
	t.squeeze(seg)
	if seg.listed {
		t.list(other)
	}
	for i := range span / 2 {
		t.directory[first+span/2+i] = other
	}
}

// halves returns the segment at a prefix and its sibling, or nil if that is split or missing.
func (t *table) halves(at uint64) (seg, other *segment) {
	seg = t.directory[at>>(64-t.depth)]
	if seg.depth == 0 {
		return seg, nil
	}
	other = t.directory[(at^1<<(64-seg.depth))>>(64-t.depth)]
	if other.depth != seg.depth {
		return seg, nil
	}
	return seg, other
}

// isSecondHalf reports whether the segment at a prefix is the second of two siblings.
func (t *table) isSecondHalf(at uint64) bool {
	depth := t.directory[at>>(64-t.depth)].depth
	return depth > 0 && at>>(64-depth)&1 != 0
}

// merge joins the segment at a prefix with its sibling if they have up to most entries together, and reports
// whether it did.
func (t *table) merge(at uint64, most int) bool {
	seg, other := t.halves(at)
	if other == nil || int(seg.used)+int(other.used) > most {
		return false
	}
	t.made--
	t.rebuild(seg)
	t.deal(other, other, seg, seg)
	t.chunks.giveChain(other.arena.first)
	if other.listed {
		other.clear()
		t.list(seg)
	}
	t.atDepth[seg.depth] -= 2
	seg.depth--
	t.atDepth[seg.depth]++
	first, span := t.directoryRange(at>>t.skip, seg.depth)
	for i := range span {
		t.directory[first+i] = seg
	}
	for t.depth > 0 && t.atDepth[t.depth] == 0 {
		t.halveDirectory()
	}
	return true
}

// rebuild makes a segment's overflow marks exact and moves entries home.
func (t *table) rebuild(seg *segment) { t.deal(t.lift(seg), seg, seg, seg) }

// lift moves a segment's entries, without records, to the spare segment, until deal.
func (t *table) lift(seg *segment) (lifted *segment) {
	if t.spare == nil {
		t.spare = new(segment)
	}
	*t.spare = *seg
	seg.clear()
	return t.spare
}

// deal distributes entries to two segments by their last shared leading bit, or all to one. Records that
// leave the arena of records become garbage there.
func (t *table) deal(from, records, low, high *segment) {
	slots := t.slots()
	for i := range from.buckets {
		b := &from.buckets[i]
		for slot := range slots {
			if t.isEmpty(b, slot) {
				continue
			}
			hash, to := t.hashAt(b, slot), low
			if t.prefix(hash)>>(64-high.depth)&1 != 0 {
				to = high
			}
			other, otherSlot := t.place(to, hash, b.tatNs(slot))
			if !t.long {
				if code := b.inlineCode(slot); t.packed {
					other.setPacked(otherSlot, code, b.packedWords(slot))
				} else {
					other.setInline(otherSlot, code, b[keyWord+2*slot], b[keyWord+2*slot+1])
				}
				continue
			}
			at := b.locator(slot)
			if b.place(slot) == placeArena && to != records {
				records.arena.garbage += uint32(lengthOf(at))
				at = t.appendRecord(&to.arena, t.record(at), dbOf(at))
			}
			other.setLong(otherSlot, b.lane(slot), hash, at)
		}
	}
}

// directoryRange returns the directory entries of the segment of a depth at a hash.
func (t *table) directoryRange(hash uint64, depth uint8) (first, span int) {
	span = 1 << (t.depth - depth)
	return int(t.prefix(hash)>>(64-t.depth)) &^ (span - 1), span
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
