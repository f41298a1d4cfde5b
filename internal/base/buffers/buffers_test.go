package buffers

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"cellserver/internal/test/racetest"
)

// TestSizes: a buffer has the least power of two that is enough, also when it was used before.
func TestSizes(t *testing.T) {
	var p Pool
	for _, tt := range []struct{ n, want int }{
		{0, 1}, {1, 1}, {3, 4}, {4 << 10, 4 << 10}, {leastKept, leastKept}, {leastKept + 1, 2 * leastKept}, {100_000, 128 << 10},
		{mostKept, mostKept}, {mostKept + 1, 2 * mostKept},
	} {
		for range 3 {
			b := p.Get(tt.n)
			if len(b) != tt.want {
				t.Fatalf("%d bytes: got %d, want %d", tt.n, len(b), tt.want)
			}
			p.Put(b)
		}
	}
	p.Put(nil)
}

// TestUsedAgain: large buffers and chunks take no new memory.
func TestUsedAgain(t *testing.T) {
	if racetest.Enabled {
		t.Skip("sync.Pool forgets at random under the race detector")
	}
	var p Pool
	for _, size := range []int{leastKept, mostKept} {
		again := false
		for range 100 { // a collection, or another processor, may have it made anew
			b := p.Get(size)
			p.Put(b)
			c := p.Get(size)
			again = again || &c[0] == &b[0]
			p.Put(c)
		}
		if !again {
			t.Errorf("%d bytes: none was used again", size)
		}
	}
	data := make([]byte, 10*ChunkBytes)
	var q Queue
	if allocs := testing.AllocsPerRun(100, func() {
		q.Add(&p, data)
		q.Clear(&p)
	}); allocs > 1 {
		t.Errorf("%v allocations to queue 10 chunks", allocs)
	}
}

// TestQueue against a plain buffer.
func TestQueue(t *testing.T) {
	random, contents := rand.New(rand.NewPCG(1, 2)), rand.NewChaCha8([32]byte{})
	var p Pool
	for range 100 {
		var q Queue
		var model []byte
		for range random.IntN(50) {
			switch random.IntN(8) {
			case 0:
				q.Clear(&p)
				model = nil
			case 1, 2, 3, 4:
				b := make([]byte, random.IntN(1<<random.IntN(19)))
				_, _ = contents.Read(b)
				q.Add(&p, b)
				model = append(model, b...)
			default:
				if front := q.Front(); len(front) > 0 {
					n := 1 + random.IntN(len(front))
					if !bytes.Equal(front[:n], model[:n]) {
						t.Fatal("other bytes than were added")
					}
					q.Take(&p, n)
					model = model[n:]
				}
			}
			most := len(model) + 2*ChunkBytes
			if len(model) == 0 {
				most = 0
			}
			if q.Len() != len(model) || q.Held() < len(model) || q.Held() > most || (len(q.Front()) > 0) != (len(model) > 0) {
				t.Fatalf("%d bytes in %d, want %d", q.Len(), q.Held(), len(model))
			}
		}
	}
}

// TestShortQueueIsSmall: most clients leave little unread.
func TestShortQueueIsSmall(t *testing.T) {
	var p Pool
	var q Queue
	q.Add(&p, make([]byte, minChunkBytes))
	if q.Held() != minChunkBytes {
		t.Errorf("%d bytes", q.Held())
	}
}
