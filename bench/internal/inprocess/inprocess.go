// Package inprocess measures limiters that are libraries, by calling them. A process measures only one of
// them, and once, because its memory is measured, too.
package inprocess

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"cellserver/bench/internal/report"
)

const (
	window = time.Second
	rounds = 3
	batch  = 128
)

// Measure fills the named limiter with keys, and then calls it with random ones of them.
func Measure(name string, keys int) (report.Limiter, error) {
	for _, l := range limiters() {
		if l.name == name {
			return measure(l, keys)
		}
	}
	return report.Limiter{}, fmt.Errorf("inprocess: unknown limiter %q; choose from %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of the limiters.
func Names() (names []string) {
	for _, l := range limiters() {
		names = append(names, l.name)
	}
	return names
}

func measure(l library, keys int) (report.Limiter, error) {
	before, err := resident()
	if err != nil {
		return report.Limiter{}, err
	}
	take, err := l.open(keys)
	if err != nil {
		return report.Limiter{}, fmt.Errorf("inprocess: %s: %w", l.name, err)
	}
	var names keyNames
	for key := 0; key < keys; key += batch {
		if err := take(names.from(key)); err != nil {
			return report.Limiter{}, fmt.Errorf("inprocess: %s: %w", l.name, err)
		}
	}
	after, err := resident()
	if err != nil {
		return report.Limiter{}, err
	}
	result := report.Limiter{Name: l.name, Keys: keys, BytesPerKey: float64(after-before) / float64(keys)}
	for range rounds {
		ns, bytes, err := ask(take, keys)
		if err != nil {
			return report.Limiter{}, fmt.Errorf("inprocess: %s: %w", l.name, err)
		}
		result.NsPerOp = append(result.NsPerOp, ns)
		result.BytesPerOp = bytes
	}
	return result, nil
}

// ask calls the limiter with random keys for some time.
func ask(take func([][]byte) error, keys int) (nsPerOp, bytesPerOp float64, err error) {
	var names keyNames
	pcg := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, ops := time.Now(), 0
	for time.Since(begin) < window {
		for range 16 {
			if err := take(names.random(pcg, keys)); err != nil {
				return 0, 0, err
			}
			ops += batch
		}
	}
	elapsed := time.Since(begin)
	runtime.ReadMemStats(&after)
	return float64(elapsed) / float64(ops), float64(after.TotalAlloc-before.TotalAlloc) / float64(ops), nil
}

// keyNames is a batch of keys of 16 bytes, as in a connection's buffer. Libraries that require strings have
// to convert them.
type keyNames struct {
	bytes [batch][16]byte
	views [batch][]byte
}

func (k *keyNames) set(i, key int) {
	b := append(k.bytes[i][:0], "key:"...)
	const digits = 12
	for range digits - len(strconv.AppendInt(b[4:4], int64(key), 10)) {
		b = append(b, '0')
	}
	k.views[i] = strconv.AppendInt(b, int64(key), 10)
}

func (k *keyNames) from(key int) [][]byte {
	for i := range k.views {
		k.set(i, key+i)
	}
	return k.views[:]
}

func (k *keyNames) random(r *rand.Rand, keys int) [][]byte {
	for i := range k.views {
		k.set(i, r.IntN(keys))
	}
	return k.views[:]
}

// resident returns this process's memory without garbage.
func resident() (int, error) {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("inprocess: memory: %w", err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0, fmt.Errorf("inprocess: memory: %w", err)
	}
	return pages * os.Getpagesize(), nil
}
