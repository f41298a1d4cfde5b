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
