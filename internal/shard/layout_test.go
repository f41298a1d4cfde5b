package shard

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"cellserver/internal/store"
)

// How entries stand in memory shows in no answer of a store, but in what it costs.

// TestEntriesAreReadBack: by the lengths at which a key is stored otherwise, all that a slot tells of its entry.
func TestEntriesAreReadBack(t *testing.T) {
	for _, tt := range []struct {
		db        uint16
		nameBytes int
		code      uint64
	}{
		{0, 0, codeEmptyKey},
		{0, 1, codeEmptyKey + 1},
		{0, 7, codeEmptyKey + 7},
		{0, 8, codeEmptyKey + 8},
		{0, 16, codeEmptyKey + 16},
		{0, 17, codeInArena},
		{0, 4098, codeInArena},
		{0, 4099, codeAlone},
		{1, 0, codeEmptyKey + 2 | bitOtherDB},
		{255, 6, codeEmptyKey + 8 | bitOtherDB},
		{256, 7, codeEmptyKey + 9 | bitOtherDB},
		{65535, 14, codeEmptyKey + 16 | bitOtherDB},
		{65535, 15, codeInArena | bitOtherDB},
		{1, 4096, codeInArena | bitOtherDB},
		{1, 4097, codeAlone | bitOtherDB},
	} {
		t.Run(fmt.Sprint(tt.db, " ", tt.nameBytes), func(t *testing.T) {
			tb := &table{seed: maphash.MakeSeed()}
			first, k := key(0, strings.Repeat("first", 20)), key(tt.db, strings.Repeat("\xff", tt.nameBytes))
			hash := hashKey(tb.seed, k.DB, k.Name)
			ref, stored := refOf(&k, hash), tt.nameBytes
			if tt.db != 0 {
				stored += 2
			}
			if ref.code != tt.code || ref.isLong() != (stored > inlineBytes) || storedBytes(&k) != stored {
				t.Fatalf("code %#x of %d bytes, want %#x of %d", ref.code, storedBytes(&k), tt.code, stored)
			}
			tb.insert(refOf(&first, 0), &first, kindFunnel, t0) // so that the offset is not 0
			const other = kindMask                              // than a funnel's
			tb.insert(ref, &k, other, t0)
			b, slot := tb.find(ref, &k)
			if b == nil {
				t.Fatal("it is not found")
			}
			if got := b.code(slot) >> kindShift & kindMask; got != other {
				t.Errorf("kind %d, want %d", got, other)
			}
			seg := tb.directory[0]
			if got := tb.hashAt(b, slot); got != hash {
				t.Errorf("hash %x, want %x", got, hash)
			}
			if got := tb.dbAt(seg, b, slot); got != tt.db {
				t.Errorf("database %d, want %d", got, tt.db)
			}
			if got := tb.storedBytesAt(b, slot); got != stored {
				t.Errorf("%d bytes are stored, want %d", got, stored)
			}
			if got := tb.appendName([]byte("before"), seg, b, slot); string(got) != "before"+string(k.Name) {
				t.Errorf("the name is %q", got)
			}
		})
	}
}

// TestHashesOfDatabases: one name in all databases is in all shards, and all buckets of a segment, about as often.
func TestHashesOfDatabases(t *testing.T) {
	seed := maphash.MakeSeed()
	var shards [maxShards]int
	var buckets [segmentBuckets]int
	const databases = 1 << 16
	for db := range databases {
		hash := hashKey(seed, uint16(db), []byte("user:1"))
		shards[hash>>(64-8)]++
		buckets[homeOf(hash)]++
	}
	for i, n := range shards {
		if n < databases/len(shards)/2 || n > databases/len(shards)*2 {
			t.Errorf("shard %d has %d of %d", i, n, databases)
		}
	}
	for i, n := range buckets {
		if n < databases/len(buckets)/2 || n > databases/len(buckets)*2 {
			t.Errorf("bucket %d has %d of %d", i, n, databases)
		}
	}
}

// TestReserve: a buffer is copied only where it has no room, and then grows by a part of itself at the least.
func TestReserve(t *testing.T) {
	for _, tt := range []struct {
		length, room, bytes int
		least               int // of the new buffer's room for bytes, 0 where it is the same buffer
	}{
		{0, 0, 0, 0},
		{0, 0, 1, 1},
		{100, 10, 9, 0},
		{100, 10, 10, 0},
		{100, 10, 11, 25},
		{100, 10, 26, 26},
		{1000, 0, 1, 250},
		{1000, 0, 300, 300},
	} {
		buf := make([]byte, tt.length, tt.length+tt.room)
		for i := range buf {
			buf[i] = byte(i)
		}
		got := reserve(buf, tt.bytes)
		if string(got) != string(buf) {
			t.Errorf("%+v: the bytes are others", tt)
		}
		room := cap(got) - len(got)
		same := cap(buf) > 0 && cap(got) > 0 && &got[:1][0] == &buf[:1][0]
		if wantSame := tt.least == 0 && cap(buf) > 0; same != wantSame || room < tt.least || !same && room > 2*tt.least+16 {
			t.Errorf("%+v: the same buffer: %t, with room for %d", tt, same, room)
		}
	}
}

// TestMemoryUsageOfOne: the shares are as documented, to the byte.
func TestMemoryUsageOfOne(t *testing.T) {
	for _, keys := range []int{1, 2, 3, 7, 19, segmentFull} {
		s := newStore(1)
		sh, n := &s.shards[0], 0
		inShard := func(format string) (k store.Key) { // the next such key that is in the shard
			for k = key(0, fmt.Sprintf(format, n)); s.shardOf(ref(s, k).hash) != sh; k = key(0, fmt.Sprintf(format, n)) {
				n++
			}
			n++
			return k
		}
		long := inShard("%0100d")
		put(t, s, t0, long, 60)
		var short store.Key
		for range keys - 1 {
			short = inShard("%d")
			put(t, s, t0, short, 60)
		}
		share := (segmentBytes + pointerBytes + keys - 1) / keys
		arena := cap(sh.table.arenas.bufs[1]) + sliceHeaderBytes
		if got, _ := s.MemoryUsage(t0, long); got != share+arena {
			t.Errorf("%d keys, one of them long: it costs %d, want %d", keys, got, share+arena)
		}
		if got, ok := s.MemoryUsage(t0, short); keys > 1 && got != share {
			t.Errorf("%d keys: a short one costs %d, %t, want %d", keys, got, ok, share)
		}
	}
}

// TestMemoryUsageInParts: a segment's places in the directory are in its keys' shares, and an arena is parted by bytes.
func TestMemoryUsageInParts(t *testing.T) {
	s := newStore(1)
	for i := range 3000 {
		put(t, s, t0, key(uint16(i%2), strings.Repeat(fmt.Sprint(i, "-"), 1+i%12)), 60)
	}
	for i := range 2000 { // segments of several depths, and arenas with garbage
		if i%7 > 0 {
			_, _ = s.Delete(t0, []store.Key{key(uint16(i%2), strings.Repeat(fmt.Sprint(i, "-"), 1+i%12))})
		}
	}
	sweepOnce(s, t0)
	for i := range s.shards {
		tb := &s.shards[i].table
		places := map[*segment]int{}
		for _, seg := range tb.directory {
			places[seg]++
		}
		for seg, places := range places {
			entries, live := 0, 0
			seg.each(func(b *bucket, slot int) {
				if entries++; isLong(b.code(slot)) {
					live += tb.storedBytesAt(b, slot)
				}
			})
			seg.each(func(b *bucket, slot int) {
				k := store.Key{DB: tb.dbAt(seg, b, slot), Name: tb.appendName(nil, seg, b, slot)}
				want := (segmentBytes + pointerBytes*places + entries - 1) / entries
				if isLong(b.code(slot)) {
					want += ((cap(tb.arenas.bufs[seg.arena])+sliceHeaderBytes)*storedBytes(&k) + live - 1) / live
				}
				if got, ok := s.MemoryUsage(t0, k); !ok || got != want {
					t.Fatalf("%d bytes in one of %d entries with %d places: %d, %t, want %d", storedBytes(&k), entries, places, got, ok, want)
				}
			})
		}
	}
}
