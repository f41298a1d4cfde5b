package transfer

import (
	"context"
	"slices"
	"time"

	"cellserver/internal/limiter"
	"cellserver/internal/store"
)

// Import takes the keys of limiters from one running server into another: redis-cell's from a Redis, or a cellserver's. The
// source is only read.
type Import struct {
	From, Into *Server // Into is nil to write nothing
	Match      string  // Redis's pattern; * for all
	DB         int     // of the source; -1 for all
	Rate       int     // keys a second; 0 for no limit
	StateFile  string  // where to go on; empty for none
	// Progress is told after each page, of about how many keys there are.
	Progress func(c Counts, of int64)
	// Example is told of the first few keys that would be taken, with the time until they expire.
	Example func(e Entry, left time.Duration)

	state    progress
	examples int
	began    time.Time
	read     int64 // keys since then, those included that do not match
}

// Reasons why a key is no limiter's.
const (
	notString  = "not a string"
	needsDump  = "not a funnel; the user needs the right to DUMP"
	notTAT     = "not a number of nanoseconds"
	noExpiry   = "does not expire"
	otherTTL   = "does not expire at the time that it holds"
	ttlWithin  = 2 * time.Second
	readTries  = 3 // of a key that may have changed between its value and its TTL
	maxExample = 10

	absentTTL = -2 // go-redis's for Redis's -2
)

// Run goes through the source's databases. When it fails, or ctx ends, the state file says where to go on; when it is done
// there is none.
func (im *Import) Run(ctx context.Context) (Counts, error) {
	runID, err := im.From.runID(ctx)
	if err != nil {
		return Counts{}, err
	}
	begin := progress{Source: im.From.name, RunID: runID, Match: im.Match, OnlyDB: im.DB}
	if im.Into != nil {
		begin.Target = im.Into.name
	}
	if im.state, err = readProgress(im.StateFile, begin); err != nil {
		return Counts{}, err
	}
	numbers, keys, err := im.From.databases(ctx)
	if err != nil {
		return Counts{}, err
	}
	if im.DB >= 0 {
		numbers = []int{im.DB}
	}
	im.began = time.Now()
	for _, db := range numbers {
		if slices.Contains(im.state.Done, db) {
			continue
		}
		if err := im.database(ctx, db, keys); err != nil {
			return im.state.Counts, err
		}
	}
	return im.state.Counts, im.state.remove(im.StateFile)
}

// database takes one database's keys, from the cursor on if that is where an earlier run was.
func (im *Import) database(ctx context.Context, db int, keys int64) error {
	if im.state.DB != db {
		im.state.DB, im.state.Cursor = db, 0
	}
	im.From.use(db)
	count := int64(pageKeys)
	if im.Rate > 0 {
		count = min(count, int64(max(im.Rate/10, 1)))
	}
	return im.From.scan(ctx, im.Match, im.state.Cursor, count, func(names []string, next uint64) error {
		counts := im.state.Counts.clone()
		if err := im.page(ctx, db, names, &counts); err != nil {
			return err
		}
		im.state.Counts, im.state.Cursor = counts, next
		if next == 0 {
			im.state.Done = append(im.state.Done, db)
		}
		if err := im.state.write(im.StateFile); err != nil {
			return err
		}
		im.Progress(counts, keys)
		im.read += max(count, int64(len(names)))
		return im.wait(ctx)
	})
}

// wait holds the rate.
func (im *Import) wait(ctx context.Context) error {
	if im.Rate == 0 {
		return ctx.Err()
	}
	due := time.Duration(float64(im.read) / float64(im.Rate) * float64(time.Second))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(due - time.Since(im.began)):
		return nil
	}
}

// page takes keys of the source's current database.
func (im *Import) page(ctx context.Context, db int, names []string, counts *Counts) error {
	counts.Seen += int64(len(names))
	entries, err := im.entries(ctx, db, names, counts)
	if err != nil {
		return err
	}
	if im.Into == nil {
		counts.Written += int64(len(entries))
		return nil
	}
	shift, err := im.From.shiftNs(ctx, im.Into)
	if err != nil {
		return err
	}
	for i := range entries {
		limiter.Shift(&entries[i].State, shift)
	}
	return im.Into.put(ctx, db, entries, counts)
}

// entries returns those of the keys that a limiter has made.
func (im *Import) entries(ctx context.Context, db int, names []string, counts *Counts) (entries []Entry, err error) {
	for try := 1; len(names) > 0; try++ {
		beforeNs, err := im.From.NowNs(ctx)
		if err != nil {
			return nil, err
		}
		values, err := im.From.values(ctx, names, true)
		if err != nil {
			return nil, err
		}
		afterNs := im.From.clock.nowNs()
		var again []string
		for i, v := range values {
			e := Entry{Key: store.Key{DB: uint16(db), Name: []byte(names[i])}}
			var reason string
			if e.State, reason = v.limiterState(beforeNs, afterNs); reason == notString && im.From.isCellserver {
				reason = needsDump
			}
			switch {
			case v.err == nil && v.ttl == absentTTL:
				counts.Expired++
			case reason == "":
				entries = append(entries, e)
				im.example(e, afterNs)
			case reason == otherTTL && try < readTries:
				again = append(again, names[i])
			default:
				count(&counts.Others, reason)
			}
		}
		names = again
	}
	return entries, nil
}

func (im *Import) example(e Entry, nowNs int64) {
	if im.Example != nil && im.examples < maxExample {
		im.examples++
		im.Example(e, time.Duration(e.State.ExpiresNs-nowNs))
	}
}

// limiterState returns the state of a key: what a cellserver has dumped, or a TAT as redis-cell keeps it, in decimal, and the key
// expires then. It was read between two times. Otherwise it says what the key is instead.
func (v value) limiterState(beforeNs, afterNs int64) (s limiter.State, reason string) {
	s, ok := v.state()
	expiresNs := int64(v.ttl)
	switch {
	case v.err != nil:
		return s, notString
	case !ok:
		return s, notTAT
	case v.dumped != nil:
		return s, ""
	case v.ttl < 0:
		return s, noExpiry
	case s.ExpiresNs-beforeNs < expiresNs-int64(ttlWithin), s.ExpiresNs-afterNs > expiresNs+int64(ttlWithin):
		return s, otherTTL
	}
	return s, ""
}
