package shard

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"cellserver/internal/store"
)

// The layout of entries shows only in their cost.

// TestEntriesAreReadBack checks all properties of an entry at the lengths that change its storage.
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
		{0, 17, bitLong},
		{0, 128, bitLong},
		{0, 129, bitLong},
		{0, 4096, bitLong},
		{0, 4097, bitLong},
		{1, 0, codeEmptyKey + 2 | bitOtherDB},
		{255, 6, codeEmptyKey + 8 | bitOtherDB},
		{256, 7, codeEmptyKey + 9 | bitOtherDB},
		{65535, 14, codeEmptyKey + 16 | bitOtherDB},
		{65535, 15, bitLong},
		{65535, 4096, bitLong},
		{65535, 4097, bitLong},
	} {
		t.Run(fmt.Sprint(tt.db, " ", tt.nameBytes), func(t *testing.T) {
			tb := &table{seed: maphash.MakeSeed(), long: tt.code&bitLong != 0}
			k := key(tt.db, strings.Repeat("\xff", tt.nameBytes))
			hash := hashKey(tb.seed, k.DB, k.Name)
			ref, stored := refOf(&k, hash), tt.nameBytes
			if tt.nameBytes > plainBytes {
				stored += hashBytes
			}
			if ref.code != tt.code || ref.isLong() != tb.long || isInline(&k) == tb.long {
				t.Fatalf("code %#x, want %#x", ref.code, tt.code)
			}
			b, slot := insertAndFind(t, tb, &item{ref: ref, key: &k, expiresNs: t0})
			other := *tb
			other.seed = maphash.MakeSeed()
			if isKept := other.hashAt(b, slot) == hash; isKept != (tt.nameBytes > plainBytes) {
				t.Errorf("that the hash is kept is %t", isKept)
			}
			if got := tb.entryBytes(b, slot); tb.long && (got < stored || got > stored+stored/4) {
				t.Errorf("%d bytes are stored, want %d", got, stored)
			}
		})
	}
}

// insertAndFind inserts an entry and compares what is read back.
func insertAndFind(t *testing.T, tb *table, it *item) (b *bucket, slot int) {
	t.Helper()
	if tb.long { // so that the offset is not 0, and a record in two chunks
		setTAT(tb, strings.Repeat("first", roomBytes/5-3), t0)
	}
	tb.insert(it)
	if b, slot = tb.find(it.ref, it.key); b == nil {
		t.Fatalf("%d bytes of name, %d of payload: not found", len(it.key.Name), len(it.payload))
	}
	if kind, hash, db := tb.kindAt(b, slot), tb.hashAt(b, slot), tb.dbAt(b, slot); kind != it.kind || hash != it.ref.hash || db != it.key.DB {
		t.Errorf("kind %d, hash %x, database %d, want %d, %x, %d", kind, hash, db, it.kind, it.ref.hash, it.key.DB)
	}
	if name := tb.appendName([]byte("before"), b, slot); string(name) != "before"+string(it.key.Name) || tb.nameBytesAt(b, slot) != len(it.key.Name) {
		t.Errorf("the name is %.20q of %d bytes, want %d", name, tb.nameBytesAt(b, slot), len(it.key.Name))
	}
	if got := tb.payloadAt(b, slot); !bytes.Equal(got, it.payload) {
		t.Errorf("a payload of %d bytes, want %d", len(got), len(it.payload))
	}
	return b, slot
}

// TestHashesOfDatabases: one name spreads over shards and buckets by database.
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

// TestMemoryUsageInParts: keys share directory entries equally, and an arena by bytes.
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
		for _, tb := range s.shards[i].tables() {
			places := map[*segment]int{}
			for _, seg := range tb.directory {
				places[seg]++
			}
			for seg, places := range places {
				live := 0
				tb.each(seg, func(b *bucket, slot int) { live += tb.entryBytes(b, slot) })
				tb.each(seg, func(b *bucket, slot int) {
					k := store.Key{DB: tb.dbAt(b, slot), Name: tb.appendName(nil, b, slot)}
					want := (segmentBytes + pointerBytes*places + int(seg.used) - 1) / int(seg.used)
					if tb.long {
						want += (chunkBytes*seg.arena.length()*tb.entryBytes(b, slot) + live - 1) / live
					}
					if got, ok := s.MemoryUsage(t0, k); !ok || got != want {
						t.Fatalf("%d bytes in one of %d entries with %d places: %d, %t, want %d", len(k.Name), seg.used, places, got, ok, want)
					}
				})
			}
		}
	}
}
