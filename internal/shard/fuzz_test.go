package shard

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// FuzzTable carries out operations on a table and on a map: each takes a byte that says which, one for the key, and one
// for the key's length.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 2, 200, 1, 1, 2, 3, 0, 0})
	f.Add([]byte("a longer one, which puts some keys of lengths that differ, deletes some of them, and sweeps"))
	lengths := []int{17, 18, 24, 36, 40, 62, 64, 100, 250, roomBytes - 1, roomBytes, roomBytes + 1, 2 * roomBytes, arenaKeyBytes, arenaKeyBytes + 1, 9000}
	f.Fuzz(func(t *testing.T, operations []byte) {
		for _, long := range []bool{false, true} {
			tb, m := &table{seed: maphash.MakeSeed(), long: long}, map[string]int64{}
			for i := 0; i+2 < len(operations); i += 3 {
				n := 1 + int(operations[i+2])%inlineBytes
				if long {
					n = lengths[int(operations[i+2])%len(lengths)]
				}
				name := fmt.Sprintf("%0*x", n, operations[i+1])
				switch tatNs := int64(operations[i+2]) + 1; operations[i] % 8 {
				case 0, 1, 2, 3:
					m[name] = tatNs
					setTAT(tb, name, tatNs)
				case 4, 5:
					delete(m, name)
					setTAT(tb, name, 0)
				case 6:
					sweepAll(tb, m, tatNs)
				case 7:
					if tb.count > 0 {
						tb.rebuild(tb.directory[0])
						tb.squeeze(tb.directory[0])
						tb.gather(tb.directory[0])
					}
				}
			}
			checkTable(t, tb, m)
		}
	})
}
