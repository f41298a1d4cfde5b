package ahead

// sketch counts the calls of keys in the present second, in bounded memory. It may count too many for a key, and never too few.
// The zero sketch is ready to use.
type sketch struct {
	startedNs int64
	rows      [2][columns]uint32
}

const (
	columns  = 256
	periodNs = 1_000_000_000
)

// add counts calls of a key, and returns how many there were in this second.
func (s *sketch) add(hash uint64, calls int, localNs int64) int64 {
	if age := localNs - s.startedNs; age < 0 || age >= periodNs {
		*s = sketch{startedNs: localNs}
	}
	a, b := &s.rows[0][hash>>16%columns], &s.rows[1][hash>>40%columns]
	*a += uint32(calls)
	*b += uint32(calls)
	return int64(min(*a, *b))
}
