package rdb

// decompress returns what was compressed by LZF, which must be n bytes. Each part begins with a byte: below 32 it is one less
// than how many bytes follow that stand for themselves; else its upper three bits are how many bytes, less two, stood before
// already, with another byte behind it where they are 7, and its lower five bits and the next byte are how far before, less one.
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
		for range length { // of which the last may be copies of the first
			out, from = append(out, out[from]), from+1
		}
	}
	return out, len(out) == n
}
