// Package lockrank has mutexes that panic where they are taken out of order. TestLocksAreTakenInOrder builds
// the program with them; it is in no other build.
package lockrank

import (
	"fmt"
	"sync"
	"unsafe"
)

// Rank is a type for each rank; several locks of one that is in order may be held, by ascending address.
type Rank interface {
	rank() (rank int, inOrder bool)
}

type held struct {
	lock unsafe.Pointer
	rank int
}

var (
	mu    sync.Mutex
	locks = map[uintptr][]held{} // by goroutine; what is empty is kept, so that tests allocate nothing
)

// goroutine returns what tells a goroutine from the others that run.
func goroutine() uintptr

func enter[R Rank](lock unsafe.Pointer, waits bool) {
	var r R
	rank, inOrder := r.rank()
	id := goroutine()
	mu.Lock()
	defer mu.Unlock()
	for _, h := range locks[id] {
		if waits && (rank < h.rank || rank == h.rank && (!inOrder || uintptr(lock) <= uintptr(h.lock))) {
			panic(fmt.Sprintf("a lock of rank %d is taken while one of rank %d is held", rank, h.rank))
		}
	}
	locks[id] = append(locks[id], held{lock, rank})
}

func leave(lock unsafe.Pointer) {
	mu.Lock()
	defer mu.Unlock()
	drop := func(id uintptr) bool {
		for i, h := range locks[id] {
			if h.lock == lock {
				locks[id] = append(locks[id][:i], locks[id][i+1:]...)
				return true
			}
		}
		return false
	}
	if drop(goroutine()) {
		return
	}
	for id := range locks { // another goroutine has taken it
		if drop(id) {
			return
		}
	}
}

// Mutex is sync.Mutex with a rank.
type Mutex[R Rank] struct{ mu sync.Mutex }

func (m *Mutex[R]) Lock()   { enter[R](unsafe.Pointer(m), true); m.mu.Lock() }
func (m *Mutex[R]) Unlock() { leave(unsafe.Pointer(m)); m.mu.Unlock() }

// TryLock waits for nobody, so that its order does not matter.
func (m *Mutex[R]) TryLock() bool {
	took := m.mu.TryLock()
	if took {
		enter[R](unsafe.Pointer(m), false)
	}
	return took
}

// RWMutex is sync.RWMutex with a rank.
type RWMutex[R Rank] struct{ mu sync.RWMutex }

func (m *RWMutex[R]) Lock()    { enter[R](unsafe.Pointer(m), true); m.mu.Lock() }
func (m *RWMutex[R]) Unlock()  { leave(unsafe.Pointer(m)); m.mu.Unlock() }
func (m *RWMutex[R]) RLock()   { enter[R](unsafe.Pointer(m), true); m.mu.RLock() }
func (m *RWMutex[R]) RUnlock() { leave(unsafe.Pointer(m)); m.mu.RUnlock() }
