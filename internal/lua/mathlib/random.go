package mathlib

// A Random is POSIX's lrand48, the generator of Redis's scripts. Every run starts it as a new server of Redis does.
type Random struct{ x uint64 }

// Reset starts the generator, for a new run.
func (r *Random) Reset() { r.x = 0x1234abcd330e }

func (r *Random) seed(n uint32) { r.x = uint64(n)<<16 | 0x330e }

func (r *Random) next() int64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int64(r.x >> 17)
}
