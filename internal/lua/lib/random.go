package lib

import "math/rand/v2"

// Random is POSIX's lrand48, the generator of Redis's scripts. Every run starts it randomly; after
// math.randomseed, numbers are Redis's.
type Random struct{ x uint64 }

// Reset starts a run's generator.
func (r *Random) Reset() { r.x = rand.Uint64() & (1<<48 - 1) }

func (r *Random) seed(n uint32) { r.x = uint64(n)<<16 | 0x330e }

func (r *Random) next() int64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return int64(r.x >> 17)
}
