package rdb

// decompress returns the n bytes compressed in b by LZF. A part begins with a byte. Below 32, it is the
// number of following literal bytes less one. Otherwise, its upper three bits are the length of a back
// reference less two, plus another byte if they are 7; the lower five bits and the next byte are its distance
// less one.
func decompress(b []byte, n int) (out []byte, ok bool) {
	const literals, allBits, bits5 = 32, 7, 1<<5 - 1
	out = make([]byte, 0, n)
	for len(b) > 0 {
		control := int(b[0])
		if b = b[1:]; control < literals {
			if control >= len(b) {
				return nil, false
			}
			out, b = append(out, b[:control+1]...), b[control+1:]
			continue
		}
		length := control >> 5
		if length == allBits && len(b) > 0 {
			length, b = length+int(b[0]), b[1:]
		}
		if len(b) == 0 {
			return nil, false
		}
		from := len(out) - (control&bits5<<8 | int(b[0])) - 1
		length, b = length+2, b[1:]
		if from < 0 || len(out)+length > n {
			return nil, false
		}
		for range length { // the last ones may be copies of the first
			out, from = append(out, out[from]), from+1
		}
	}
	return out, len(out) == n
}

const (
	tableBits     = 16
	mostDistance  = 1 << 13
	mostReference = 1<<8 + 1<<3
	mostLiterals  = 1 << 5
	leastMatch    = 3
	// A match is compared to freeMatch without regard to the end if more than freeLeft bytes are left for it.
	freeMatch = 18
	freeLeft  = 16
)

// compressor compresses as Redis does, so that payloads are the same.
type compressor struct {
	in       []byte
	out      []byte // ends with a run of literals, after its head
	literals int
	last     [1 << tableBits]int32 // place, plus one, of the last three bytes with a hash
}

// compress returns b compressed by LZF in fewer than most bytes, or nil.
func compress(b []byte, most int) []byte {
	c := &compressor{in: b, out: make([]byte, 1, most+mostLiterals)}
	at, end := 0, len(b)-2
	for at < end {
		if from, ok := c.match(at); ok {
			longest := len(c.out) + leastMatch + 1
			if c.literals == 0 {
				longest--
			}
			if longest >= most {
				return nil
			}
			n := c.length(from, at)
			c.refer(at-from-1, n)
			if at += n; at < end {
				c.note(at - 2)
				c.note(at - 1)
			}
			continue
		}
		if len(c.out) >= most {
			return nil
		}
		c.literal(b[at])
		at++
	}
	if len(c.out)+leastMatch > most {
		return nil
	}
	for ; at < len(b); at++ {
		c.literal(b[at])
	}
	c.endRun()
	return c.out
}

// note enters a place into the table and returns the one before, or -1.
func (c *compressor) note(at int) (before int) {
	b := c.in[at:]
	v := uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	slot := &c.last[(v>>(24-tableBits)-v*5)&(1<<tableBits-1)]
	before, *slot = int(*slot)-1, int32(at+1)
	return before
}

// match returns an earlier place with the same three bytes.
func (c *compressor) match(at int) (from int, ok bool) {
	from = c.note(at)
	return from, from > 0 && at-from <= mostDistance && string(c.in[from:from+leastMatch]) == string(c.in[at:at+leastMatch])
}

// length returns the length of a match.
func (c *compressor) length(from, at int) (n int) {
	longest := min(len(c.in)-at-2, mostReference)
	n = leastMatch
	if longest > freeLeft {
		for ; n <= freeMatch; n++ {
			if c.in[from+n] != c.in[at+n] {
				return n
			}
		}
	}
	for n < longest && c.in[from+n] == c.in[at+n] {
		n++
	}
	return n
}

// refer ends the run of literals and appends a back reference and the head of a run.
func (c *compressor) refer(distance, length int) {
	c.endRun()
	if length -= 2; length < 7 {
		c.out = append(c.out, byte(distance>>8|length<<5))
	} else {
		c.out = append(c.out, byte(distance>>8|7<<5), byte(length-7))
	}
	c.out = append(c.out, byte(distance), 0)
}

func (c *compressor) literal(b byte) {
	c.out = append(c.out, b)
	if c.literals++; c.literals == mostLiterals {
		c.endRun()
		c.out = append(c.out, 0)
	}
}

// endRun completes the head of a run, or removes that of an empty one.
func (c *compressor) endRun() {
	head := len(c.out) - c.literals - 1
	if c.literals == 0 {
		c.out = c.out[:head]
		return
	}
	c.out[head], c.literals = byte(c.literals-1), 0
}
