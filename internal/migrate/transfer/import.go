package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"cellserver/internal/base/smallfile"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
	"cellserver/internal/store"
)

// Import copies limiters from one running server to another: from a Redis with redis-cell, or from a
// cellserver, whose values it copies, too. It only reads the source.
type Import struct {
	From, Into *Server // Into is nil for a dry run
	Match      string  // a Redis pattern; * for all
	DB         int     // of the source; -1 for all
	Rate       int     // keys per second; 0 for no limit
	StateFile  string  // for resuming; empty for none
	// Progress is called after each page with the approximate number of keys.
	Progress func(c Counts, of int64)
	// Example is called for the first few keys to take, with their remaining lifetime.
	Example func(e Entry, left time.Duration)

	state    progress
	examples int
	began    time.Time
	read     int64 // since began, including keys that do not match
}

// Reasons for leaving a key.
const (
	notString  = "not a string"
	needsDump  = "not a funnel; the user needs permission to DUMP"
	notTAT     = "not a number of nanoseconds"
	noExpiry   = "does not expire"
	otherTTL   = "does not expire at its time"
	ttlWithin  = 2 * time.Second
	readTries  = 3 // of a key that may have changed between GET and PTTL
	maxExample = 10

	absentTTL = -2 // go-redis's for Redis's -2
)

// Run imports the source's databases. On failure or when ctx ends, the state file says where to resume; on
// success it is removed.
func (im *Import) Run(ctx context.Context) (Counts, error) {
	im.From.isSource = true
	if im.Into != nil {
		im.Into.isTarget = true
	}
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

// database imports one database, resuming at the cursor if an earlier run ended in it.
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

// wait pauses until no more keys have been read than Rate permits.
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

// page imports keys of the source's current database.
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

// entries returns the limiters among the keys.
func (im *Import) entries(ctx context.Context, db int, names []string, counts *Counts) (entries []Entry, err error) {
	for try := 1; len(names) > 0; try++ {
		beforeNs, err := im.From.NowNs(ctx)
		if err != nil {
			return nil, err
		}
		values, err := im.From.values(ctx, names, true, tatBytes)
		if err != nil {
			return nil, err
		}
		afterNs := im.From.clock.nowNs()
		var again []string
		for i, v := range values {
			e := Entry{Key: store.Key{DB: uint16(db), Name: []byte(names[i])}}
			var reason string
			e.State, reason = v.limiterState(beforeNs, afterNs)
			switch {
			case v.err == nil && v.ttl == absentTTL:
				counts.Expired++
			case v.err != nil && !isWrongType(v.err):
				count(&counts.Refused, "the source: "+resp.ErrorLine(v.err.Error()))
			case reason == "":
				entries = append(entries, e)
				im.example(e, afterNs)
			case reason == otherTTL && try < readTries:
				again = append(again, names[i])
			default:
				count(&counts.Others, im.From.why(reason))
			}
		}
		names = again
	}
	return entries, nil
}

// why returns why a key is left: with the right to DUMP, all of a cellserver's are read.
func (s *Server) why(reason string) string {
	if s.isCellserver && s.reads == byGet {
		return needsDump
	}
	return reason
}

func (im *Import) example(e Entry, nowNs int64) {
	if im.Example != nil && im.examples < maxExample {
		im.examples++
		im.Example(e, time.Duration(e.State.ExpiresNs-nowNs))
	}
}

// limiterState returns the state that a cellserver has dumped, or a decimal TAT of redis-cell that expires at
// its time; the key was read between the two times. Otherwise it returns a reason.
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

// progress is the state file of an import that has not finished.
type progress struct {
	Format int    `json:"format"`
	Source string `json:"source"`
	Target string `json:"target"`
	RunID  string `json:"run_id"` // of the source; a restart invalidates its cursors
	Match  string `json:"match"`
	OnlyDB int    `json:"only_db"` // -1 for all
	Done   []int  `json:"done"`    // databases
	DB     int    `json:"db"`
	Cursor uint64 `json:"cursor"`
	Counts Counts `json:"counts"`
}

const progressFormat = 1

// readProgress reads the state file of the same import, or returns begin if there is none.
func readProgress(path string, begin progress) (progress, error) {
	begin.Format, begin.DB = progressFormat, -1
	if path == "" {
		return begin, nil
	}
	b, err := smallfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return begin, nil
	}
	if err != nil {
		return progress{}, err
	}
	p, err := parseProgress(b)
	switch {
	case err != nil:
		return progress{}, fmt.Errorf("%s: %w; remove it to start over", path, err)
	case p.Source != begin.Source || p.Target != begin.Target || p.Match != begin.Match || p.OnlyDB != begin.OnlyDB:
		db := "all"
		if p.OnlyDB >= 0 {
			db = strconv.Itoa(p.OnlyDB)
		}
		return progress{}, fmt.Errorf("%s belongs to another import (of %s into %s, --match %q, --db %s); give its flags, or another file", path, p.Source, p.Target, p.Match, db)
	case p.RunID != begin.RunID:
		return progress{}, fmt.Errorf("%s has restarted since; remove %s to start over; what was imported stays", p.Source, path)
	}
	return p, nil
}

func parseProgress(b []byte) (p progress, err error) {
	if err := json.Unmarshal(b, &p); err != nil {
		return progress{}, fmt.Errorf("not the state of an import: %w", err)
	}
	if p.Format != progressFormat {
		return progress{}, fmt.Errorf("format %d, want %d", p.Format, progressFormat)
	}
	return p, nil
}

// write replaces the state file atomically.
func (p *progress) write(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func (p *progress) remove(path string) error {
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (c Counts) clone() Counts {
	c.Others, c.Refused = maps.Clone(c.Others), maps.Clone(c.Refused)
	return c
}
