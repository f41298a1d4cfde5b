package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/funnel"
	"cellserver/internal/keep/changes"
	"cellserver/internal/keep/persist"
	"cellserver/internal/keep/persist/disk"
	"cellserver/internal/keep/replication"
	"cellserver/internal/limiter"
	"cellserver/internal/shard"
	"cellserver/internal/store"
)

// LiveKeys are the keys of a data directory, in as much memory as its server would need.
type LiveKeys struct {
	// NowNs is the time of a server that starts in the directory: never before the last one's.
	NowNs int64
	keys  *shard.Store
}

// OpenDir locks a data directory for reading.
func OpenDir(path string) (*disk.OS, error) {
	if err := noFile(path); err != nil {
		return nil, err
	}
	dir, err := disk.OpenExisting(path)
	return dir, explainDir(path, err)
}

// noFile returns an error with advice if path is a file.
func noFile(path string) error {
	switch info, err := os.Stat(path); {
	case err != nil || info.IsDir():
		return nil //nolint:nilerr // whoever opens it tells what is wrong
	case info.Mode().IsRegular() && isDump(path): // other files may block when opened or read
		return fmt.Errorf("%s is a dump, not a data directory: cellserver load %[1]s checks it, and then loads it", path)
	default:
		return fmt.Errorf("%s is a file, not a data directory: give the directory that --data-dir names", path)
	}
}

func isDump(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, len(streamMagic))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == streamMagic
}

func explainDir(path string, err error) error {
	newer := (*persist.NewerError)(nil)
	switch {
	case errors.As(err, &newer):
		return fmt.Errorf("%s was written by a later version: %w", path, newer)
	case errors.Is(err, disk.ErrInUse):
		return fmt.Errorf("%s is in use by a running server: give its redis://HOST:PORT, or stop it first", path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such directory: %s", path)
	case errors.Is(err, persist.ErrDamaged):
		return fmt.Errorf("%w; see cellserver check %s", err, path)
	}
	return err
}

// ReadDir reads the data directory of a stopped server at the system's time.
func ReadDir(ctx context.Context, path string, nowNs int64) (*LiveKeys, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	l := &LiveKeys{keys: shard.New()}
	clockNs, err := persist.ReadDir(ctx, dir, l.keys, nowNs)
	l.NowNs = max(nowNs, clockNs)
	return l, explainDir(path, err)
}

func (l *LiveKeys) Count() (n int) {
	for _, of := range l.CountKinds() {
		n += of
	}
	return n
}

// CountKinds returns the number of keys of each kind.
func (l *LiveKeys) CountKinds() (n [limiter.Kinds]int) {
	_ = l.Each(context.Background(), func(e Entry) error { n[e.State.Kind]++; return nil }) // which does not fail
	return n
}

// Each calls visit with each key until it fails.
func (l *LiveKeys) Each(ctx context.Context, visit func(e Entry) error) (err error) {
	walk, stop := context.WithCancel(ctx)
	defer stop()
	l.keys.States(walk, l.NowNs, func(c store.Change) {
		if err == nil && c.Spent == nil {
			if err = visit(Entry{c.Key, c.State}); err != nil {
				stop()
			}
		}
	}, nil)
	return errors.Join(err, ctx.Err())
}

// CheckDir reads all files of a data directory without changing it, and returns its keys as well.
func CheckDir(ctx context.Context, path string, nowNs int64) (persist.Report, *LiveKeys, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return persist.Report{}, nil, err
	}
	defer dir.Close() //nolint:errcheck // nothing was written
	l := &LiveKeys{keys: shard.New()}
	report, err := persist.Check(ctx, dir, l.keys, nowNs)
	checkBeside(dir, &report)
	l.NowNs = max(nowNs, report.ClockNs)
	return report, l, err
}

// checkBeside adds the limits and the overrides that commands have defined, the role, and the limits for
// Envoy, to the report.
func checkBeside(dir disk.Dir, report *persist.Report) {
	add := func(f persist.FileReport) {
		if !errors.Is(f.Err, fs.ErrNotExist) {
			report.Files = append(report.Files, f)
		}
	}
	n, size, err := limitsfile.CheckKept(dir)
	add(persist.FileReport{Name: limitsfile.KeptName, Bytes: size, Records: int64(n), Err: err})
	n, size, dropped, err := limitsfile.CheckOverrides(dir)
	add(persist.FileReport{Name: limitsfile.OverridesName, Bytes: size, Records: int64(n), Tail: dropped, Err: err})
	size, err = replication.CheckRole(dir)
	add(persist.FileReport{Name: replication.RoleName, Bytes: size, Err: err})
	size, err = envoyconfig.CheckKept(dir)
	add(persist.FileReport{Name: envoyconfig.KeptName, Bytes: size, Err: err})
}

// LoadDir creates a data directory from the unexpired entries read. On failure it leaves no data.
func LoadDir(path string, nowNs int64, from Reader) (counts Counts, err error) {
	if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Counts{}, err
	}
	if err := noFile(path); err != nil {
		return Counts{}, err
	}
	dir, err := disk.OpenOS(path)
	if err != nil {
		return Counts{}, explainDir(path, err)
	}
	err = persist.CreateDir(dir, nowNs, func(visit func(c store.Change)) error {
		for {
			e, err := from.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			counts.Seen++
			switch {
			case e.State.ExpiresNs <= nowNs:
				counts.Expired++
			case !e.State.Kind.Row().Endless && e.State.ExpiresNs-nowNs > funnel.MaxToleranceNs:
				count(&counts.Refused, "empty in more than 2^62 ns")
			case len(e.Key.Name) > changes.MaxKeyBytes:
				count(&counts.Refused, "the key is longer than 1 MiB")
			default:
				counts.Written++
				visit(store.Change{Key: e.Key, State: e.State})
			}
		}
	})
	if err := errors.Join(err, dir.Close()); err != nil {
		if errors.Is(err, persist.ErrNotEmpty) {
			err = fmt.Errorf("%s has data already; give an empty or a new directory, or load into the running server by redis://HOST:PORT", path)
		}
		return Counts{}, err
	}
	return counts, nil
}
