package shard

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// FuzzTable runs operations on a table and a map; each takes a byte for the operation, the key and the key's
// length.
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

// FuzzPayloads runs operations on a store and a map; each takes a byte for operation and kind, the key and
// the payload's length.
func FuzzPayloads(f *testing.F) {
	f.Add([]byte{8, 1, 2, 16, 1, 200, 1, 1, 2, 9, 1, 0, 11, 1, 90, 7, 0, 0})
	f.Add([]byte("a longer one, which puts payloads of lengths that differ, changes some of them, deletes others, and sweeps"))
	f.Fuzz(func(t *testing.T, operations []byte) {
		r := newPayloadRun(t, 1)
		for i := 0; i+2 < len(operations); i += 3 {
			k := key(uint16(operations[i+1]%2), strings.Repeat(fmt.Sprint(operations[i+1]), 1+int(operations[i+1]%8)*7))
			n := int(operations[i+2])
			switch operations[i] % 8 {
			case 5:
				r.remove(r.s, k)
			case 6:
				r.now += int64(n) * sec / 8
				sweepOnce(r.s, r.now)
			case 7:
				for j := range r.s.shards {
					if tb := &r.s.shards[j].long; tb.count > 0 {
						tb.rebuild(tb.directory[0])
						tb.squeeze(tb.directory[0])
						tb.gather(tb.directory[0])
					}
				}
			default:
				s := limiter.State{Kind: limiter.Kind(operations[i] >> 5), ExpiresNs: r.now + int64(1+n)*sec}
				if s.Kind != limiter.Funnel {
					s.Payload = bytes.Repeat([]byte{byte(i)}, n*n/60)
				}
				before, found, err := store.SetIf(r.s, r.now, k, s, store.Always)
				r.check(k, before, found)
				if r.m.set(r.now, k, s); err != nil {
					t.Fatal(err)
				}
			}
			r.look(r.s, k)
		}
		checkBudget(t, r.s)
		r.follow()
	})
}
