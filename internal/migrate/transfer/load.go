package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"cellserver/internal/resp"
	"cellserver/internal/store"
)

const (
	pageKeys  = 1000 // per request
	batchKeys = 10 * pageKeys
	// batchBytes bounds a batch's names and payloads, except for one long entry.
	batchBytes = 16 << 20
)

// Load writes entries to a running server. States are absolute and not shifted.
func Load(ctx context.Context, from Reader, to *Server, progress func(Counts)) (counts Counts, err error) {
	var batch []Entry
	bytes := 0
	for err == nil {
		var e Entry
		if e, err = from.Read(); err == nil {
			counts.Seen++
			batch = append(batch, e.clone())
			bytes += len(e.Key.Name) + len(e.State.Payload)
		}
		if len(batch) == batchKeys || bytes >= batchBytes || errors.Is(err, io.EOF) {
			if putErr := to.putAll(ctx, batch, &counts); putErr != nil {
				return counts, putErr
			}
			batch, bytes = batch[:0], 0
			progress(counts)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return counts, err
}

// putAll puts entries of several databases.
func (s *Server) putAll(ctx context.Context, entries []Entry, counts *Counts) error {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key.DB, b.Key.DB) })
	for len(entries) > 0 {
		db, n := entries[0].Key.DB, 1
		for n < len(entries) && n < pageKeys && entries[n].Key.DB == db {
			n++
		}
		if err := s.put(ctx, int(db), entries[:n], counts); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// Dump calls visit with a running cellserver's keys. A key that changes meanwhile has either state, and a key
// may come twice.
func (s *Server) Dump(ctx context.Context, visit func(e Entry) error, progress func(keys, of int64)) error {
	numbers, of, err := s.databases(ctx)
	if err != nil {
		return err
	}
	if db, ok := s.NamesDB(); ok {
		numbers = []int{db}
	}
	var told int64
	for _, db := range numbers {
		s.use(db)
		err := s.scan(ctx, "*", 0, pageKeys, func(keys []string, _ uint64) error {
			values, err := s.values(ctx, keys, false, tatBytes)
			if err = cmp.Or(err, s.mayDump()); err != nil {
				return err
			}
			for i, v := range values {
				state, ok := v.state()
				if v.text == "" && v.err == nil { // it has expired
					continue
				}
				if v.err != nil {
					return fmt.Errorf("%s: key %q of database %d: %w", s.name, shortened(keys[i]), db, resp.OneLine(v.err))
				}
				if !ok {
					return fmt.Errorf("%s: key %q of database %d is not a limiter; dump reads a cellserver, and cellserver import a Redis with redis-cell", s.name, shortened(keys[i]), db)
				}
				if err := visit(Entry{store.Key{DB: uint16(db), Name: []byte(keys[i])}, state}); err != nil {
					return err
				}
				told++
			}
			progress(told, of)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shortened returns the beginning of a key for a message.
func shortened(key string) string {
	const maxBytes = 64
	if len(key) > maxBytes {
		return key[:maxBytes] + "..."
	}
	return key
}
